"""A job's own rules for its output: what the file may say, and what lines that come or do not come mean."""

import json
from typing import Any

import pytest

from steward.adapters.node.as_user import FileEnd, Matches
from steward.agent.log_rules import LogRule, LogSense, broken, rules_in, watched, worst
from steward.model.job_sight import LogState

STEPS = {
    "name": "steps",
    "logPattern": "step",
    "expectedStartCutOffInSeconds": 120,
    "expectedRecurringFrequencyInSeconds": 300,
}
SPEED: dict[str, Any] = {
    "name": "speed",
    "logPattern": r"tokens/s: ([0-9.]+)",
    "metricThreshold": 99.5,
    "operator": "lt",
    "metricEvaluationDataPoints": 3,
}


def a_file(*rules: dict[str, Any], **more: Any) -> str:
    return json.dumps({"enabled": True, "logMonitoringConfiguration": list(rules), **more})


def why_not(text: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        rules_in(text)
    return str(caught.value)


def test_the_smallest_file_is_that_of_hyperpods_page() -> None:
    assert rules_in('{"enabled": true}').rules == ()
    assert rules_in('{"enabled": true}').are_on
    assert not rules_in('{"enabled": false}').are_on


def test_the_fields_of_the_training_operator_are_read() -> None:
    steps, speed = rules_in(a_file(STEPS, SPEED)).rules
    assert steps == LogRule(name="steps", pattern="step", start_s=120.0, again_s=300.0)
    assert speed == LogRule(name="speed", pattern=SPEED["logPattern"], bound=99.5, operator="lt", points=3)


def test_fields_that_are_not_known_are_told_and_the_others_hold() -> None:
    rules = rules_in(a_file({**STEPS, "sev": 1}, action="cancel"))
    assert watched(rules).text == "1 rule; not known here: action, sev"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "no JSON object"),
        ("{}", '"enabled": true'),
        ('{"enabled": "yes"}', '"enabled": true'),
        (json.dumps({"enabled": True, "logMonitoringConfiguration": {}}), "no list"),
        (a_file(*({**STEPS, "name": str(n)} for n in range(17))), "at most 16"),
        (a_file(STEPS, STEPS), "same name"),
        (a_file({**STEPS, "name": ""}), "rule 1: name"),
        (a_file({"name": "a"}), "rule 'a': logPattern"),
        (a_file({"name": "a", "logPattern": "x"}), "asks for nothing"),
        (a_file({**STEPS, "expectedStartCutOffInSeconds": "soon"}), "expectedStartCutOffInSeconds is no number"),
        (a_file({**STEPS, "expectedStartCutOffInSeconds": float("nan")}), "expectedStartCutOffInSeconds is no number"),
        (a_file({**SPEED, "operator": "slower"}), "operator is none of gt, lt"),
        (a_file({**SPEED, "operator": ""}), "go together"),
        (a_file({**SPEED, "faultOnMatch": "yes"}), "neither true nor false"),
        (a_file({**STEPS, "logPattern": "x" * 401}), "1 to 400 characters"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(text: str, why: str) -> None:
    assert why in why_not(text)
    assert "\n" not in broken(why_not(text)).text


def sense(*rules: dict[str, Any], began: float | None = 0.0, at: float = 0.0, rank: int | None = None) -> LogSense:
    return LogSense(rules_in(a_file(*rules)).rules, began=began, at=at, rank=rank)


def lines(count: int = 0, *numbers: float, stops: int = 0) -> Matches:
    return Matches(end=FileEnd(path="/out", inode=1, at=0), counts=(count, stops), numbers=(numbers, ()))


def states(one: LogSense, at: float, found: Matches | None = None) -> list[LogState]:
    one.note(found or lines(), at)
    return [word.state for word in one.words(at)]


def test_the_first_line_is_late_after_its_time_and_each_further_one_after_its_own() -> None:
    one = sense(STEPS)
    assert states(one, 120.0) == []
    assert states(one, 121.0) == [LogState.LATE]
    assert states(one, 130.0, lines(1)) == []
    assert states(one, 430.0) == []
    assert states(one, 431.0) == [LogState.LATE]
    (word,) = one.words(440.0)
    assert (word.for_s, word.limit_s) == (310.0, 300.0)
    assert states(one, 450.0, lines(5)) == []


def test_of_a_step_that_began_before_the_agent_the_next_line_has_its_time_anew() -> None:
    one = sense(STEPS, began=None, at=5000.0)
    assert states(one, 5300.0) == []
    assert states(one, 5301.0) == [LogState.LATE]


def test_a_rule_ends_with_its_stop() -> None:
    one = sense({**STEPS, "stopPattern": "done"})
    assert states(one, 10.0, lines(3, stops=1)) == []
    assert states(one, 9000.0) == []


def test_a_number_is_slow_when_so_many_in_a_row_are_beyond_the_bound() -> None:
    one = sense(SPEED, rank=3)
    assert states(one, 10.0, lines(2, 90.0, 91.0)) == []
    assert states(one, 20.0, lines(1, 99.4)) == [LogState.SLOW]
    (word,) = one.words(20.0)
    assert (word.rank, word.text) == (3, "99.4 is below 99.5, as are 3 in a row")
    assert states(one, 30.0, lines(1, 99.5)) == []


def test_a_fault_stays() -> None:
    one = sense({"name": "oom", "logPattern": "out of memory", "faultOnMatch": True})
    assert states(one, 10.0) == []
    assert states(one, 20.0, lines(1)) == [LogState.FAULT]
    assert states(one, 900.0) == [LogState.FAULT]


def test_of_many_files_the_worst_word_counts_and_of_equal_ones_the_first_rank() -> None:
    words = []
    for rank, number in ((2, 1.0), (1, 2.0)):
        one = sense({**SPEED, "metricEvaluationDataPoints": 1}, rank=rank)
        one.note(lines(1, number), 5.0)
        words += one.words(5.0)
    (word,) = worst(words)
    assert word.rank == 1
