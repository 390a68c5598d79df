"""What agent and head tell each other: its bytes, its bounds, and that it is understood as it was sent.

`frames.json` holds the bytes of each message, also of one with foreign or too much text. `refusals.json` holds what is
said of each sample of a frame without one of its fields, or with an object there, and so the bounds of each field; an
empty text: it is understood. What a bound does is in test_frame_codec.py.
"""

import copy
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.wire import handshake
from steward.adapters.wire.deep_messages import deep_frame, measure_line
from steward.adapters.wire.elastic_messages import elastic_order_frame, elastic_word_frame
from steward.adapters.wire.frames import Frame, Malformed, pack
from steward.adapters.wire.handshake import Hello, Terms
from steward.adapters.wire.head_messages import (
    BodyPiece,
    FollowerGreeting,
    PassedAnswer,
    PassedRequest,
    body_frame,
    follower_greeting_frame,
    passed_answer_frame,
    passed_request_frame,
)
from steward.adapters.wire.job_messages import (
    MAX_BUNDLE,
    MAX_JOBS,
    MAX_STEPS,
    PIECE,
    ask_frame,
    bundle_frames,
    bundle_of,
    exits_frame,
    exits_of,
    facts_frame,
    facts_of,
    facts_wanted_frame,
    progress_frame,
    progress_of,
    sight_frame,
    sight_of,
)
from steward.adapters.wire.messages import (
    MAX_FINDINGS,
    answer_frame,
    check_now_frame,
    opted_frame,
    report_frame,
    report_of,
    withdraw_frame,
)
from steward.adapters.wire.order_messages import (
    LogChunk,
    LookOrder,
    look_frame,
    looked_frame,
    mended_frame,
    order_frames,
    order_record,
    setup_frame,
    setup_log_frame,
)
from steward.model.agent_action import (
    AgentAction,
    AgentsAction,
    CollectStacks,
    LetGo,
    MendNode,
    ResizeRun,
    SetUpNode,
    SubmitReplica,
)
from steward.model.ask import Answer, Ask, AskKind, OptedIn
from steward.model.deep import DeepReport, Measure
from steward.model.elastic import Activity, ElasticWord, FailedSubmit
from steward.model.health import Advice, Finding, Incarnation, Outcome, Report, Scope, Severity
from steward.model.ids import AskId, BootId, InstanceId, JobId, Key, NodeName
from steward.model.job_report import Lean, LogSign, Progress, ResumeFacts, TaskExit
from steward.model.job_sight import Doing, LogState, LogWord, RankGroup, SlowRank, StepSight
from steward.model.mend import MendReport
from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.why import Why
from steward.model.witness import Witness
from steward.ports import Permanent
from tests.builders.frames import SAMPLES, places_of, read

RECORDED = Path(__file__).parents[2] / "recordings" / "wire"
N1, N2, N3, J7, KEY = NodeName("n1"), NodeName("n2"), NodeName("n3"), JobId(7), Key("k")
MODE = ResumeMode.parse("any:2,max=3")
FOREIGN = "caf\u00e9\n\x1b[31m" + "x" * 450
WHO = Incarnation(instance=InstanceId("i-1"), boot=BootId("b-1"))
WHY = Why(rule="r", text="n2 was lost")
ASK = Ask(
    id=AskId("n1-1"),
    kind=AskKind.STEP,
    job=J7,
    step="0",
    node=N1,
    uid=1000,
    mode=MODE,
    attempt=2,
    restart=1,
    status=9,
    at=1.5,
)
SIGN = LogSign(sign="nccl", lean=Lean.INFRA, strong=True, line="NCCL WARN", order=3)
OPTED = OptedIn(job=J7, uid=1000, mode=MODE, restart=1, at=1.5)
BAD = Finding(
    check="gpu.xid",
    outcome=Outcome.FAILED,
    severity=Severity.FATAL,
    advice=Advice.REPLACE,
    text="off the bus",
    at=1.5,
    event=True,
    scope=Scope.CLUSTER,
    hardware="GPU-1",
)
MEASURE = Measure(check="gpu.gemm", node=N1, outcome=Outcome.PASSED, value=1.5, unit="TFLOPS", partner=N2, seconds=2.0)
FACTS = ResumeFacts(
    uid=1000,
    resumes=2,
    culprits=(N2, N1),
    excluded=(N3,),
    reason="n2 was lost",
    checkpoint="/c/10",
    checkpoint_step=10,
    resumed="resume 2",
)
LIFECYCLE = Lifecycle(source="s3://b/s", on_create="a.sh", on_init_complete="b.sh", sha256="0" * 64)
ORDER = SetUpNode(
    key=KEY,
    why=WHY,
    node=N1,
    token="t-1",
    lifecycle=LIFECYCLE,
    timeout_s=60.0,
    resource_config='{"a": 1}',
    features=frozenset({"f", "g"}),
)
WORD = ElasticWord(
    run=J7,
    restart=1,
    uid=1000,
    node=N1,
    spec="8,grace=30",
    state=Activity.RUNNING,
    generation=2,
    members=frozenset({N2, N1}),
    joined=frozenset({N3, N1, N2}),
    leaving=frozenset({N2}),
    step=12,
    saved_step=10,
    consumed=384,
    failed=(FailedSubmit(token="r1", why=FOREIGN),) * 10,
    saved_s=0.5,
)
TERMS = Terms(interval_s=1.0, late_after_s=3.0, now=1.5)
FOLLOWS = FollowerGreeting(leader="head1:6861", again_s=0.5)
PASSED = PassedRequest(
    door="http", method="GET", path="/v1/%41", query="wait_s=5", headers=("host: head2",), client="127.0.0.1"
)
MENDED = MendReport(token="t-1", error="no", at=1.5)
DEEP = DeepReport(run="r-1", node=N1, measures=(MEASURE,), progress="half", at=1.5)
PROGRESS = Progress(
    job=J7,
    restart=1,
    node=N1,
    step=12,
    stepped=990.0,
    pace_s=2.5,
    checkpoint="/c/10",
    checkpoint_step=10,
    checkpointed=900.0,
    first_step=500.25,
    first=3,
)
SIGHT = StepSight(
    job=J7,
    step="0",
    node=N1,
    step_s=3600.0,
    groups=(
        RankGroup(doing=Doing.SPINS, ranks=7, for_s=90.0, rank=0, pid=4710, usual_s=12.0),
        RankGroup(doing=Doing.BLOCKED, ranks=1, for_s=120.0, rank=5, pid=4711, waits_in="rpc_wait_bit_killable"),
    ),
)


WATCHED = LogWord(state=LogState.WATCHED, text="2 rules")
LATE = LogWord(state=LogState.LATE, rule="steps", for_s=301.0, limit_s=300.0, rank=0)

SLOW = SlowRank(rank=3, gpu="GPU-1", for_s=660.0, why="too hot", mhz=1050)


def _sent(order: AgentAction | AgentsAction) -> Frame:
    (frame,) = order_frames(order)
    return frame


def _messages() -> Iterator[tuple[str, Frame]]:
    yield "ask", ask_frame(ASK)
    signs = (LogSign(sign=FOREIGN, lean=Lean.USER, strong=False, line=FOREIGN, order=1), *((SIGN,) * 20))
    yield (
        "ask with more signs than are sent",
        ask_frame(replace(ASK, signs=signs, replay=False, script_gone=True)),
    )
    yield "opted", opted_frame([OPTED, replace(OPTED, elastic="8:2", has_script=True, told_by=frozenset({N1}))])
    passed = [Finding(check=f"c{n}", outcome=Outcome.PASSED) for n in (2, 1)]
    skipped = Finding(check="s1", outcome=Outcome.SKIPPED, severity=Severity.FATAL)
    foreign = Finding(check="site.own", outcome=Outcome.UNKNOWN, text=FOREIGN, hardware=FOREIGN)
    yield (
        "report",
        report_frame(
            [*passed, skipped, foreign, BAD], "1.5", hardware=["GPU-1", FOREIGN], versions={"site.own": "1", "b": "2"}
        ),
    )
    yield "report of nothing", report_frame([], None)
    yield "answer", answer_frame(AskId("n1-1"), Answer.RETRY, frozenset({N3, N2}))
    yield "check now", check_now_frame(1.5, 2.0)
    yield (
        "let go",
        _sent(
            LetGo(
                key=KEY, why=Why(rule="r", text=FOREIGN), job=J7, uid=1000, nodes=frozenset({N1}), restart=1, before=1.5
            )
        ),
    )
    yield "withdraw", withdraw_frame(AskId("n1-1"))
    yield "look", look_frame(LookOrder(node=N2, address="10.0.0.2", port=6818))
    yield "looked", looked_frame(N2, Witness.SILENT)
    yield (
        "mend",
        _sent(MendNode(key=KEY, why=WHY, node=N1, rung=Advice.RESTART_SERVICE, target="munge.service", token="t-1")),
    )
    yield "mended", mended_frame(MendReport(token="t-1", error=FOREIGN, at=1.5))
    yield from _jobs()
    yield from _setups()
    yield from _elastic()
    yield from _heads()


def _heads() -> Iterator[tuple[str, Frame]]:
    yield "following", follower_greeting_frame(FOLLOWS)
    yield "passed request", passed_request_frame(PASSED)
    yield "passed answer", passed_answer_frame(PassedAnswer(status=200, headers=("content-type: text/plain",)))
    yield "body", body_frame(BodyPiece(data="e30=", is_last=True))
    yield "welcome of one of two heads", handshake._terms_frame(replace(TERMS, epoch=7))


def _jobs() -> Iterator[tuple[str, Frame]]:
    silent = Measure(check="c", node=N2, outcome=Outcome.UNKNOWN, value=math.nan, unit=FOREIGN, text=FOREIGN)
    yield "deep", deep_frame(DeepReport(run="r-1", node=N1, measures=(silent, MEASURE), progress=FOREIGN, at=1.5))
    yield (
        "deep with more than is told",
        deep_frame(DeepReport(run="r-1", node=N1, measures=(MEASURE,) * 140 + (silent,) * 66, is_done=True)),
    )
    yield "measure line", {"line": measure_line("r-1", N1, MEASURE).decode()}
    exits = [TaskExit(job=J7, restart=1, step="0", node=N1, task=3, status=9, at=at) for at in (999.0, 1001.0)]
    yield "exits", exits_frame(exits, 1000.0)
    yield "facts wanted", facts_wanted_frame(J7)
    yield "facts", facts_frame(J7, FACTS)
    yield (
        "facts with foreign text",
        facts_frame(
            J7, ResumeFacts(uid=1, resumes=0, culprits=(N1,) * 300, reason=FOREIGN, checkpoint=FOREIGN, resumed=FOREIGN)
        ),
    )
    yield "no facts", facts_frame(J7, None)
    yield "progress", progress_frame([PROGRESS], 1000.0)
    yield "what ranks do", sight_frame([SIGHT])
    yield "what output says by rules", sight_frame([replace(SIGHT, log=(WATCHED, LATE))])
    yield "a slow rank", sight_frame([replace(SIGHT, slow=(SLOW,))])
    unknown = Progress(job=J7, restart=0, node=N1, checkpoint=FOREIGN, checkpoint_step=0, stepped=1001.0)
    yield "progress of which little is known", progress_frame([unknown] * 70, 1000.0)
    yield (
        "stacks",
        _sent(CollectStacks(key=KEY, why=WHY, job=J7, uid=1000, nodes=frozenset({N1}), name="hang-7", signal="USR1")),
    )
    for number, frame in enumerate(bundle_frames("hang-7", "ab\n" * 6000)):
        yield f"bundle {number}", frame
    default = SiteDefault(partition="gpu", mode=MODE)
    warned = replace(TERMS, defaults=(default,) * 70, warning="resuming is off")
    yield "welcome", handshake._terms_frame(warned)
    yield "hello", handshake._hello_frame(Hello(node=N1, incarnation=WHO, version="1", opted=(OPTED,)), "0" * 32)


def _setups() -> Iterator[tuple[str, Frame]]:
    yield "order", order_record(ORDER)
    yield "setup", setup_frame(SetupReport(token="t-1", state=SetupState.RUNNING, step="a.sh", at=1.5))
    yield (
        "setup with foreign text",
        setup_frame(
            SetupReport(
                token="t-1",
                state=SetupState.FAILED,
                step=FOREIGN,
                exit_status=-9,
                why=FOREIGN,
                lines=("a", *([FOREIGN] * 30)),
            )
        ),
    )
    yield "setup log", setup_log_frame(LogChunk(token="t-1", offset=3, text="one\n\ttwo"))


def _elastic() -> Iterator[tuple[str, Frame]]:
    yield (
        "resize",
        elastic_order_frame(
            ResizeRun(
                key=KEY, why=Why.heard(FOREIGN), node=N1, run=J7, generation=2, members=frozenset({N2, N1}), grace_s=30
            )
        ),
    )
    yield (
        "submit",
        elastic_order_frame(
            SubmitReplica(
                key=KEY,
                why=Why.heard("idle"),
                node=N1,
                run=J7,
                token="r1",
                nodes=2,
                grace_s=30,
                minutes=5,
                qos="low",
                exclude=frozenset({N3, N2}),
            )
        ),
    )
    yield "elastic word", elastic_word_frame(WORD)


def _recorded(frame: Frame) -> str:
    """Its bytes on the wire, or what stands for very long ones."""
    body = pack(frame)[4:].decode()
    return body if len(body) < 4000 else f"{len(body)} bytes {hashlib.sha256(body.encode()).hexdigest()}"


def _refusals(name: str) -> dict[str, str]:
    """What is said of the sample without each of its fields, and with an object in its place."""
    said = {}
    for path in places_of(SAMPLES[name]):
        for how in ("absent", "object"):
            frame = copy.deepcopy(SAMPLES[name])
            *above, last = path
            holder = frame
            for step in above:
                holder = holder[step]
            if how == "object":
                holder[last] = {}
            else:
                del holder[last]
            said[f"{'.'.join(map(str, path))} {how}"] = _said(name, frame)
    return said


def _said(name: str, frame: Frame) -> str:
    try:
        read(name, frame)
    except Malformed as error:
        return str(error)
    return ""


MESSAGES = dict(_messages())
FRAMES: dict[str, str] = json.loads((RECORDED / "frames.json").read_text())
REFUSALS: dict[str, dict[str, str]] = json.loads((RECORDED / "refusals.json").read_text())


def test_every_message_is_recorded() -> None:
    assert MESSAGES.keys() == FRAMES.keys()
    assert SAMPLES.keys() == REFUSALS.keys()


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_message_has_the_bytes_that_it_always_had(name: str) -> None:
    assert _recorded(MESSAGES[name]) == FRAMES[name]


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_field_that_is_absent_or_wrong_is_refused_as_it_always_was(name: str) -> None:
    assert _refusals(name) == REFUSALS[name]


def _shared(value: Any) -> Any:
    """What is sent of an order: its key and its reason are the receiver's own."""
    return replace(value, key=KEY, why=WHY) if hasattr(value, "key") and hasattr(value, "why") else value


SIGNED = replace(ASK, signs=(SIGN,), replay=False)
DEFAULTS = (
    SiteDefault(partition="gpu", account="llm", mode=ResumeMode.parse("any:3")),
    SiteDefault(qos="long", mode=MODE),
)
STACKS = CollectStacks(key=KEY, why=WHY, job=J7, uid=1000, nodes=frozenset({N1}), name="7-0-100", signal="USR1")
AS_SENT: tuple[tuple[str, Frame, Any], ...] = (
    *(
        ("ask", ask_frame(one), one)
        for one in (
            ASK,
            SIGNED,
            replace(SIGNED, script_gone=True, own=True),
            replace(SIGNED, script_unbegun=True),
            replace(ASK, is_reading=True),
        )
    ),
    ("answer", MESSAGES["answer"], (AskId("n1-1"), Answer.RETRY, frozenset({N2, N3}))),
    ("facts", MESSAGES["facts"], (J7, replace(FACTS, culprits=(N1, N2)))),
    ("facts", MESSAGES["no facts"], (J7, None)),
    ("facts_wanted", MESSAGES["facts wanted"], J7),
    *(("terms", handshake._terms_frame(one), one) for one in (TERMS, replace(TERMS, warning="off", defaults=DEFAULTS))),
    *(("terms", handshake._terms_frame(one), one) for one in (replace(TERMS, epoch=7), replace(TERMS, epoch=2**40))),
    ("follower_greeting", MESSAGES["following"], FOLLOWS),
    ("passed_request", MESSAGES["passed request"], PASSED),
    ("body", MESSAGES["body"], BodyPiece(data="e30=", is_last=True)),
    ("looked", MESSAGES["looked"], (N2, Witness.SILENT)),
    ("mended", mended_frame(MENDED), MENDED),
    ("deep", deep_frame(DEEP), DEEP),
    ("order", MESSAGES["order"], ORDER),
    *(("stacks", _sent(one), one) for one in (STACKS, replace(STACKS, signal=""))),
)


@pytest.mark.parametrize(("reader", "frame", "value"), AS_SENT)
def test_a_message_is_understood_as_it_was_sent(reader: str, frame: Frame, value: Any) -> None:
    assert _shared(read(reader, json.loads(json.dumps(frame)))) == _shared(value)


def test_what_ranks_do_is_understood_as_of_its_arrival() -> None:
    assert sight_of(sight_frame([SIGHT]), N1, 9.0) == (replace(SIGHT, at=9.0),)


def test_times_are_the_readers_whatever_the_clock_of_the_sender_says() -> None:
    (there,) = progress_of(progress_frame([PROGRESS], 1000.0), N1, 50_000.0)
    assert there == replace(PROGRESS, at=50_000.0, stepped=49_990.0, checkpointed=49_900.0, first_step=49_500.25)
    ended = TaskExit(job=J7, restart=1, step="0", node=N1, task=3, status=9, at=1000.0)
    assert exits_of(exits_frame([ended], 1003.0), N1, 9003.0) == (replace(ended, at=9000.0),)
    unknown = Progress(job=J7, restart=0, node=N1)
    assert progress_of(progress_frame([unknown], 5.0), N1, 9.0) == (replace(unknown, at=9.0),)
    (late,) = progress_of(progress_frame([replace(unknown, step=1, stepped=99.0)], 5.0), N1, 9.0)
    assert late.stepped == pytest.approx(9.0, abs=0.01), "a step of the sender's future was made now"


GROUP = {"doing": "waits", "ranks": 2, "for_s": 60.0, "rank": 0}
STEP = {"job": 7, "step": "0", "step_s": 90.0, "groups": [GROUP]}
EXIT = {"job": 7, "restart": 1, "step": "0", "task": 3, "status": 9, "ago": 1.0}
NONSENSE: tuple[tuple[str, Any], ...] = (
    *(("exits", {**EXIT, "job": 7, **wrong}) for wrong in ({"job": 0}, {"task": -1}, {"status": 70000}, {"ago": "x"})),
    *(("exits", {**EXIT, **wrong}) for wrong in ({"step": "x" * 33}, {"restart": True})),
    *(
        ("progress", {"job": 7, "restart": 0, **wrong})
        for wrong in (
            {"job": 2**32},
            {"restart": None},
            {"step": 10**19},
            {"stepped": math.nan},
            {"checkpoint": "a\nb"},
            {"checkpoint": "/" * 300},
        )
    ),
    ("progress", 7),
    *(("sight", {**STEP, **wrong}) for wrong in ({"job": 0}, {"step": "0 1"}, {"step_s": math.inf}, {"groups": 7})),
    *(
        ("sight", {**STEP, "groups": [{**GROUP, **wrong}]})
        for wrong in ({"doing": "sleeps"}, {"ranks": 0}, {"pid": -1}, {"for_s": math.nan}, {"waits_in": "a\nb"})
    ),
    ("sight", {**STEP, "groups": [GROUP] * 9}),
)


@pytest.mark.parametrize(("about", "record"), NONSENSE)
def test_nonsense_about_one_job_is_left_out_and_the_others_count(about: str, record: Any) -> None:
    records: dict[str, tuple[str, dict[str, Any]]] = {
        "exits": ("exits", EXIT),
        "sight": ("steps", STEP),
        "progress": ("jobs", {"restart": 0}),
    }
    key, good = records[about]
    found: Any = read(about, {"t": about, key: [record, {**good, "job": 8}]})
    assert [one.job for one in found] == [8]


def test_the_fullest_frames_fit() -> None:
    pack(progress_frame([replace(PROGRESS, step=10**18, checkpoint="/" + "c" * 254)] * (MAX_JOBS + 5), 1000.0))
    group = RankGroup(
        doing=Doing.UNKNOWN, ranks=2**20, for_s=1e9 / 7, rank=2**31, pid=2**31, waits_in='"' * 40, usual_s=0.1
    )
    fullest = replace(SIGHT, step="x" * 32, step_s=1e9 / 7, groups=(group,) * 9)
    assert len(sight_of(json.loads(pack(sight_frame([fullest] * (MAX_STEPS + 5)))[4:]), N1, 9.0)) == MAX_STEPS
    for frame in bundle_frames("7-0-1", '\n"\\' * MAX_BUNDLE):
        pack(frame)
    names = tuple(NodeName(f"n{number}") for number in range(5000))
    frame = facts_frame(J7, replace(FACTS, culprits=names, excluded=names, reason="x" * 999, checkpoint="/" * 999))
    pack(frame)
    _, facts = facts_of(frame)
    assert facts is not None
    assert (len(facts.culprits), len(facts.reason), facts.checkpoint) == (256, 200, "")


def test_the_heads_warning_is_one_harmless_line_of_bounded_length() -> None:
    hostile = handshake._terms_of({**handshake._terms_frame(TERMS), "warning": "a\nb" + "x" * 10_000}).warning
    assert (hostile[:3], len(hostile)) == ("a b", 250)


@pytest.mark.parametrize("wrong", [{"name": "../x"}, {"name": ""}, {"signal": "KILL"}])
def test_an_order_that_no_agent_would_take_is_neither_sent_nor_understood(wrong: dict[str, str]) -> None:
    with pytest.raises(Permanent):
        order_frames(replace(STACKS, **wrong))  # type: ignore[arg-type]
    with pytest.raises(Malformed):
        read("stacks", {**_sent(STACKS), **wrong})


@given(st.text(alphabet=st.sampled_from("ab\n\t ~"), max_size=3 * PIECE) | st.just("x" * (MAX_BUNDLE + 99)))
def test_a_text_comes_over_whole_or_cut_off_and_the_last_piece_says_so(text: str) -> None:
    pieces = [bundle_of(frame) for frame in bundle_frames("7-0-1", text)]
    assert "".join(piece.text for piece in pieces) == text[:MAX_BUNDLE]
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(piece.offset == number * PIECE for number, piece in enumerate(pieces))


@pytest.mark.parametrize(
    "wrong", [{"text": "x" * (PIECE + 1)}, {"text": "\x1b[31m"}, {"offset": MAX_BUNDLE}, {"name": "../../etc"}]
)
def test_a_piece_that_is_none_is_malformed(wrong: Frame) -> None:
    (frame,) = bundle_frames("7-0-1", "text")
    with pytest.raises(Malformed):
        bundle_of({**frame, **wrong})


def test_an_agent_reports_measures_of_its_own_node_and_of_others_only_that_there_are_none() -> None:
    with pytest.raises(Malformed, match="n1 reports a measure of another node, n2"):
        read("deep", deep_frame(replace(DEEP, measures=(replace(MEASURE, node=N2),))))
    silent = replace(MEASURE, node=N2, outcome=Outcome.UNKNOWN)
    assert read("deep", deep_frame(replace(DEEP, measures=(silent,)))) == replace(DEEP, measures=(silent,))


def test_quiet_results_are_only_named() -> None:
    passed = Finding(check="disk", outcome=Outcome.PASSED, text="all of it is free")
    skipped = Finding(check="gpu", outcome=Outcome.SKIPPED, text="no GPU")
    event = Finding(check="kernel_log.xid31", outcome=Outcome.PASSED, text="Xid 31", event=True)
    told = report_of(report_frame([passed, skipped, event], "r1", hardware=["GPU-1"], versions={"site.a": "0af1"}))
    assert (set(told.passed), set(told.skipped), told.findings) == ({"disk"}, {"gpu"}, (event,))
    assert (told.hardware, told.versions, told.checked) == (("GPU-1",), {"site.a": "0af1"}, "r1")


def test_a_report_says_since_when_each_check_passes() -> None:
    found = [Finding(check=check, outcome=Outcome.PASSED, at=at) for check, at in (("b", 7.9), ("a", 5.0), ("c", 5.0))]
    frame = report_frame(found, None)
    assert report_of(frame).passed_since == (5, 7, 5), "by name"
    assert report_of({**frame, "passed_since": []}).passed_since == (), "an agent that does not tell"
    for wrong in ([1], [-1, 1, 1], ["1", 1, 1]):
        with pytest.raises(Malformed, match="passed_since"):
            report_of({**frame, "passed_since": wrong})


def test_nodes_that_say_the_same_share_what_is_kept_of_it() -> None:
    def said(*checks: str) -> Report:
        findings = [Finding(check=check, outcome=Outcome.PASSED) for check in checks]
        return report_of(report_frame(findings, None, versions={"site.a": "0af1"}))

    one, same, other = said("disk", "clock"), said("clock", "disk"), said("disk")
    assert one.passed is same.passed
    assert one.versions is same.versions
    assert other.passed == {"disk"}


def test_of_too_many_findings_the_worst_are_told_and_they_fit_a_frame() -> None:
    text = "\\" * 1000
    fine = [Finding(check=f"a{n:02}", outcome=Outcome.UNKNOWN, text=text) for n in range(60)]
    bad = Finding(check="z", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text=text)
    fatal = Finding(check="zz", outcome=Outcome.FAILED, severity=Severity.FATAL, text=text)
    frame = report_frame([*fine, bad, fatal], None)
    told = report_of(frame)
    assert [finding.check for finding in told.findings[:3]] == ["zz", "z", "a00"]
    assert len(told.findings) == MAX_FINDINGS
    assert told.checked is None
    assert pack(frame)
