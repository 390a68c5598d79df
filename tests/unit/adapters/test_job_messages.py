"""Frames about opted-in jobs that run."""

from dataclasses import replace

import pytest

from steward.adapters.wire.frames import Malformed, pack
from steward.adapters.wire.handshake import Terms, _terms_frame, _terms_of
from steward.adapters.wire.job_messages import (
    ask_frame,
    ask_of,
    defaults_of,
    defaults_records,
    exits_frame,
    exits_of,
    facts_frame,
    facts_of,
    facts_wanted_frame,
    facts_wanted_of,
)
from steward.model.ask import Ask, AskKind
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import Lean, LogSign, ResumeFacts, TaskExit
from steward.model.resume_mode import ResumeMode, SiteDefault

NODE = NodeName("n1")
EXIT = TaskExit(job=JobId(7), restart=1, step="0", node=NODE, task=3, status=9, at=1000.0)
FACTS = ResumeFacts(
    uid=1000, resumes=2, culprits=(NodeName("n3"),), excluded=(NodeName("n3"),), reason="r", checkpoint="/c"
)
SIGN = LogSign(sign="nccl.timeout", lean=Lean.CASCADE, strong=True, line="Watchdog caught", order=7)
ASK = Ask(
    id=AskId("a-1"),
    kind=AskKind.STEP,
    job=JobId(7),
    step="0",
    node=NODE,
    uid=1000,
    mode=ResumeMode.parse("1,max=3"),
    attempt=1,
    restart=0,
    status=256,
    at=5.0,
    signs=(SIGN,),
    replay=False,
)


def test_exits_are_told_by_their_age_so_that_clocks_may_differ() -> None:
    (read,) = exits_of(exits_frame((EXIT,), now=1003.0), NODE, now=9003.0)
    assert read.at == 9000.0
    assert (read.job, read.restart, read.step, read.node, read.task, read.status) == (7, 1, "0", NODE, 3, 9)


@pytest.mark.parametrize("facts", [FACTS, None, ResumeFacts(uid=1000, resumes=0, checkpoint_step=12)])
def test_facts_arrive_as_they_were_sent(facts: ResumeFacts | None) -> None:
    assert facts_of(facts_frame(JobId(7), facts)) == (7, facts)


def test_facts_are_bounded() -> None:
    names = tuple(NodeName(f"n{number}") for number in range(5000))
    long = ResumeFacts(
        uid=1000, resumes=1, culprits=names, excluded=names, reason="x" * 999, checkpoint="/" + "y" * 999
    )
    frame = facts_frame(JobId(7), long)
    pack(frame)
    _, read = facts_of(frame)
    assert read is not None
    assert (len(read.culprits), len(read.reason), read.checkpoint) == (256, 200, "")


def test_a_question_names_its_job() -> None:
    assert facts_wanted_of(facts_wanted_frame(JobId(7))) == 7


def test_signs_and_replay_travel_with_an_ask() -> None:
    assert ask_of(ask_frame(ASK), NODE) == ASK
    gone = replace(ASK, script_gone=True, own=True)
    assert ask_of(ask_frame(gone), NODE) == gone
    unbegun = replace(ASK, script_unbegun=True)
    assert ask_of(ask_frame(unbegun), NODE) == unbegun
    reading = replace(ASK, signs=(), is_reading=True)
    assert ask_of(ask_frame(reading), NODE) == reading
    newer = ("script_gone", "script_unbegun", "own")
    older = {key: value for key, value in ask_frame(ASK).items() if key not in newer}
    assert ask_of(older, NODE) == ASK


def test_the_heads_warning_for_jobs_travels_and_is_one_harmless_line_of_bounded_length() -> None:
    told = Terms(interval_s=1.0, late_after_s=3.0, now=0.0, warning="resuming is off")
    assert _terms_of(_terms_frame(told)) == told
    hostile = _terms_of({**_terms_frame(told), "warning": "a\nb" + "x" * 10_000}).warning
    assert (hostile[:3], len(hostile)) == ("a b", 250)


def test_the_sites_defaults_travel_in_their_order() -> None:
    defaults = (
        SiteDefault(partition="gpu", account="llm", mode=ResumeMode.parse("any:3")),
        SiteDefault(qos="long", mode=ResumeMode.parse("1,max=2")),
    )
    assert defaults_of({"t": "welcome", "defaults": defaults_records(defaults)}) == defaults
    assert defaults_of({"t": "welcome"}) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"signs": [{"sign": "x", "lean": "maybe", "strong": True, "line": "", "order": 0}]},
        {"signs": [{"sign": "x", "lean": "user", "strong": 1, "line": "", "order": 0}]},
        {"signs": [{"sign": "x", "lean": "user", "strong": True, "line": "y" * 201, "order": 0}]},
        {"signs": [1] * 17},
        {"replay": "no"},
        {"script_gone": 1},
        {"script_unbegun": 1},
    ],
)
def test_an_ask_with_signs_that_make_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        ask_of({**ask_frame(ASK), **wrong}, NODE)


@pytest.mark.parametrize(
    "wrong", [{"job": 0}, {"task": -1}, {"status": 70000}, {"step": "x" * 33}, {"ago": "long"}, {"restart": True}]
)
def test_an_exit_that_makes_no_sense_is_left_out_and_the_others_count(wrong: dict[str, object]) -> None:
    (record,) = exits_frame((EXIT,), now=1000.0)["exits"]
    frame = {"t": "exits", "exits": [{**record, **wrong}, {**record, "task": 77}]}
    assert [one.task for one in exits_of(frame, NODE, now=0.0)] == [77]
