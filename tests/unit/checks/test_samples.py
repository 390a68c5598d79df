"""When a state counts as bad, and when as good again."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from steward.checks import services, slurm_node
from steward.checks.check import Check, failed, passed, skipped, unknown
from steward.checks.samples import CheckStanding, SampleRule, after_look
from steward.model.agent_tables import HealthPolicy
from steward.model.health import Advice, Outcome, Severity

RULE = SampleRule(bad_samples=2, last_samples=3, clear_after_s=600)
LOOKS = {
    "b": failed("it is bad", Severity.DEGRADED, Advice.REBOOT),
    "g": passed("fine"),
    "?": unknown("the look hung"),
    "-": skipped("nothing there"),
}


def after(looks: str, *, step_s: float = 15.0, rule: SampleRule = RULE) -> CheckStanding:
    standing = CheckStanding()
    for number, word in enumerate(looks):
        standing = after_look(standing, LOOKS[word], number * step_s, rule)
    return standing


def outcome(looks: str, *, step_s: float = 15.0, rule: SampleRule = RULE) -> Outcome:
    told = after(looks, step_s=step_s, rule=rule).told
    assert told is not None
    return told.outcome


def test_before_the_first_look_nothing_is_told() -> None:
    assert CheckStanding().finding("disk") is None


def test_one_bad_look_is_a_doubt_that_is_told_with_its_text_and_wants_another_look() -> None:
    standing = after("gb")
    assert outcome("gb") is Outcome.UNKNOWN
    assert standing.is_unsure
    assert standing.told is not None
    assert standing.told.text == "1 bad of 2 looks, not enough yet: it is bad"


def test_two_bad_looks_of_three_are_a_failure() -> None:
    assert [outcome(looks) for looks in ("bb", "gbb", "bgb")] == [Outcome.FAILED] * 3


def test_bad_looks_too_far_apart_are_no_failure() -> None:
    assert outcome("bggb") is Outcome.UNKNOWN
    assert outcome("bggbgg") is Outcome.PASSED


def test_a_failed_look_counts_neither_way() -> None:
    assert outcome("b?b") is Outcome.FAILED
    assert outcome("?") is Outcome.UNKNOWN
    assert outcome("bb?????") is Outcome.FAILED
    assert outcome("g??") is Outcome.UNKNOWN


def test_a_failure_that_began_to_stand_carries_the_time_of_its_first_bad_look() -> None:
    finding = after("ggbbbb").finding("disk")
    assert finding is not None
    assert finding.at == 30.0


def test_a_failure_must_last_where_the_check_says_so() -> None:
    slow = replace(RULE, bad_for_s=60)
    assert outcome("bbbb", rule=slow) is Outcome.UNKNOWN
    assert outcome("bbbbb", rule=slow) is Outcome.FAILED


def test_a_failure_is_over_when_it_was_good_for_ten_minutes() -> None:
    assert outcome("bb" + "g" * 40) is Outcome.FAILED
    assert outcome("bb" + "g" * 41) is Outcome.PASSED


def test_a_bad_look_in_between_starts_the_ten_minutes_anew() -> None:
    assert outcome("bb" + "g" * 30 + "b" + "g" * 40) is Outcome.FAILED
    assert outcome("bb" + "g" * 30 + "b" + "g" * 41) is Outcome.PASSED


def test_what_is_not_there_any_more_is_not_bad_any_more() -> None:
    assert outcome("bb-") is Outcome.SKIPPED
    assert outcome("bb-b") is Outcome.UNKNOWN


@given(st.text(alphabet="bg?-", max_size=60), st.floats(min_value=0.1, max_value=400))
def test_a_failure_is_never_told_without_enough_bad_looks(looks: str, step_s: float) -> None:
    standing = CheckStanding()
    for number, word in enumerate(looks):
        was_bad = standing.is_bad
        standing = after_look(standing, LOOKS[word], number * step_s, RULE)
        if standing.is_bad and not was_bad:
            counted = [one for one in looks[: number + 1] if one in "bg"]
            assert counted[-3:].count("b") >= 2
        assert standing.is_bad == (standing.told is not None and standing.told.is_bad)


@given(st.text(alphabet="g?-", max_size=60))
def test_without_a_bad_look_nothing_is_ever_bad(looks: str) -> None:
    assert not after(looks).is_bad


def test_a_check_whose_cause_does_not_flap_clears_with_the_first_good_look() -> None:
    def rule(check: Check) -> SampleRule:
        return SampleRule.of(HealthPolicy(clear_after_s=600.0), check)

    assert rule(slurm_node.LOADED).clear_after_s == 0.0, "whoever mends plugstack.conf looks whether it helped"
    assert rule(slurm_node.SPOOL).clear_after_s == 600.0
    assert rule(services.SLURMD).bad_for_s == services.SLURMD.bad_for_s


def test_a_finding_says_since_when_it_holds_and_when_the_check_last_passed() -> None:
    never, once, again = (after(looks).finding("disk") for looks in ("bb", "ggbb", "ggbbgg"))
    assert never is not None
    assert once is not None
    assert again is not None
    assert (never.at, never.passed_at, never.good_since) == (0.0, 0.0, 0.0)
    assert (once.at, once.passed_at, once.good_since) == (30.0, 15.0, 0.0)
    assert (again.at, again.passed_at, again.good_since) == (30.0, 75.0, 60.0), "not good for long enough yet"


def test_a_check_that_does_not_apply_any_more_keeps_when_it_last_passed() -> None:
    assert after("gg-").passed_at == 15.0
