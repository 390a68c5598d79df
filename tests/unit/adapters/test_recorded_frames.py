"""Agents and heads of other versions read our bytes: each message is written as it was recorded, and refused as it was.

`frames.json` holds the bytes of each message, also of one with foreign or too much text. `refusals.json` holds what is
said of each sample of a frame without one of its fields, or with an object there; an empty text: it is understood.
"""

import copy
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.wire import handshake
from steward.adapters.wire.deep_messages import deep_frame, measure_line
from steward.adapters.wire.elastic_messages import elastic_order_frame, elastic_word_frame
from steward.adapters.wire.frames import Frame, Malformed, pack
from steward.adapters.wire.handshake import Hello, Terms
from steward.adapters.wire.job_messages import (
    ask_frame,
    bundle_frames,
    exits_frame,
    facts_frame,
    facts_wanted_frame,
    progress_frame,
)
from steward.adapters.wire.messages import (
    answer_frame,
    check_now_frame,
    opted_frame,
    report_frame,
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
from steward.model.health import Advice, Finding, Incarnation, Outcome, Scope, Severity
from steward.model.ids import AskId, BootId, InstanceId, JobId, Key, NodeName
from steward.model.job_report import Lean, LogSign, Progress, ResumeFacts, TaskExit
from steward.model.mend import MendReport
from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.why import Why
from steward.model.witness import Witness
from tests.property.test_frames_hostile import SAMPLES, places_of, read

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
    quiet_s=31.0,
)


def _sent(order: AgentAction | AgentsAction) -> Frame:
    (frame,) = order_frames(order)
    return frame


def _messages() -> Iterator[tuple[str, Frame]]:
    yield "ask", ask_frame(ASK)
    signs = (LogSign(sign=FOREIGN, lean=Lean.USER, strong=False, line=FOREIGN, order=1), *((SIGN,) * 20))
    yield (
        "ask with more signs than are sent",
        ask_frame(Ask(**{**_fields(ASK), "signs": signs, "replay": False, "script_gone": True})),
    )
    yield "opted", opted_frame([OPTED, OptedIn(**{**_fields(OPTED), "elastic": "8:2", "told_by": frozenset({N1})})])
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
        _sent(LetGo(key=KEY, why=Why(rule="r", text=FOREIGN), job=J7, nodes=frozenset({N1}), restart=1, before=1.5)),
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
    unknown = Progress(job=J7, restart=0, node=N1, checkpoint=FOREIGN, checkpoint_step=0, stepped=1001.0)
    yield "progress of which little is known", progress_frame([unknown] * 70, 1000.0)
    yield (
        "stacks",
        _sent(CollectStacks(key=KEY, why=WHY, job=J7, nodes=frozenset({N1}), name="hang-7", signal="USR1")),
    )
    for number, frame in enumerate(bundle_frames("hang-7", "ab\n" * 6000)):
        yield f"bundle {number}", frame
    default = SiteDefault(partition="gpu", mode=MODE)
    terms = Terms(interval_s=1.0, late_after_s=3.0, now=1.5, defaults=(default,) * 70, warning="resuming is off")
    yield "welcome", handshake._terms_frame(terms)
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


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}


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
