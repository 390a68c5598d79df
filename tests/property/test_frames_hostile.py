"""Every frame of both directions, with anything in any place of it: understood, or refused in one clear line.

A frame type without a sample here fails `test_every_reader_of_frames_is_fuzzed` or `test_every_type_that_is_heard...`.
"""

import copy
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import steward.adapters.wire
from steward.adapters.wire import handshake
from steward.adapters.wire.frames import Frame, Malformed, unpack
from steward.adapters.wire.seal import PeerRole, digest
from steward.agent.agent import Agent
from steward.head.hearing import Hearing
from steward.model.ids import NodeName
from steward.ports import Permanent
from tests.builders.elastic import ELASTIC_FRAMES

MODE = "any:2,max=3"
FINDING = {
    "check": "gpu.xid",
    "outcome": "failed",
    "severity": "fatal",
    "advice": "replace",
    "text": "fell off the bus",
    "at": 1.0,
    "event": False,
    "scope": "node",
    "hardware": "GPU-1",
}
OPTED = {"job": 7, "uid": 1000, "mode": MODE, "restart": 0, "at": 1.0, "elastic": "8:2,grace=30"}
MEASURE = {
    "check": "gpu.gemm",
    "node": "n1",
    "outcome": "passed",
    "value": 1.0,
    "unit": "TFLOPS",
    "text": "",
    "partner": None,
    "seconds": 1.0,
}
ORDER = {
    "token": "t-1",
    "source": "s3://bucket/scripts",
    "on_create": "on_create.sh",
    "on_init_complete": "",
    "sha256": "",
    "timeout_s": 60.0,
    "resource_config": "{}",
    "provisioning": "{}",
    "features": ["a"],
}
FACTS = {
    "uid": 1000,
    "resumes": 1,
    **{nodes: ["n2"] for nodes in ("culprits", "excluded")},
    **dict.fromkeys(("reason", "resumed"), "n2 was lost"),
    "checkpoint": "/ckpt/10",
    "checkpoint_step": 10,
}
SAMPLES: dict[str, Any] = {
    "hello": {
        "t": "hello",
        "v": handshake.PROTOCOL,
        "node": "n1",
        "instance": "i",
        "boot": "b",
        "version": "1",
        "opted": [OPTED],
    },
    "terms": {"t": "welcome", "interval": 1.0, "late_after": 3.0, "now": 1.0, "defaults": [], "warning": "off"},
    "ask": {
        "t": "ask",
        "id": "n1-1",
        "kind": "batch",
        "job": 7,
        "step": "batch",
        "uid": 1000,
        "mode": MODE,
        "attempt": 1,
        "restart": 0,
        "status": 256,
        "at": 1.0,
        "signs": [{"sign": "nccl", "lean": "infra", "strong": True, "line": "NCCL WARN", "order": 3}],
        "replay": False,
        "script_gone": False,
    },
    "record": FINDING,
    "mode": {"mode": MODE},
    "opted": OPTED,
    "finding": FINDING,
    "report": {
        "t": "report",
        "findings": [FINDING],
        "passed": ["sys.disk"],
        "skipped": [],
        "hardware": ["GPU-1"],
        "versions": {"gpu.xid": "1"},
        "checked": None,
    },
    "answer": {"t": "answer", "id": "n1-1", "answer": "retry", "exclude": ["n2"]},
    "let_go": {"t": "let_go", "job": 7, "restart": 0, "before": 1.0, "why": "lost"},
    "look": {"t": "look", "node": "n2", "address": "10.0.0.2", "port": 6818},
    "looked": {"t": "looked", "node": "n2", "result": "silent"},
    "mend": {"t": "mend", "rung": "restart_service", "target": "munge.service", "token": "t-1"},
    "mended": {"t": "mended", "token": "t-1", "error": "", "at": 1.0},
    "measure": MEASURE,
    "deep": {"t": "deep", "run": "r-1", "measures": [MEASURE], "progress": "", "done": False, "at": 1.0},
    "order": ORDER,
    "setup": {
        "t": "setup",
        "token": "t-1",
        "state": "running",
        "step": "begin",
        "exit_status": None,
        "why": "",
        "lines": ["one"],
        "at": 1.0,
    },
    "setup_log": {"t": "setup_log", "token": "t-1", "offset": 0, "text": "one\n"},
    "exits": {"t": "exits", "exits": [{"job": 7, "restart": 0, "step": "0", "task": 3, "status": 9, "ago": 1.0}]},
    "facts_wanted": {"t": "facts?", "job": 7},
    "facts": {"t": "facts", "job": 7, "facts": FACTS},
    "progress": {
        "t": "progress",
        "jobs": [{"job": 7, "restart": 0, "step": 12, "stepped": 1.0, "pace_s": 2.0, "checkpoint": "/ckpt/10"}],
    },
    "stacks": {"t": "stacks", "job": 7, "name": "hang-7", "signal": "USR1"},
    "bundle": {"t": "bundle", "name": "hang-7", "offset": 0, "text": "one\n", "last": True},
    **ELASTIC_FRAMES,
    "defaults": {"defaults": [{"partition": "gpu", "account": "", "qos": "", "mode": MODE}]},
}
"""One good value for each reader, by its name without `_of`."""
BARE = {"withdraw", "check_now", "set_up"}
"""Types that are read where they are heard: by `text`, `number` and `SetUpParts` (tests below)."""

NASTY: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, 0, -1, 2**63, 10**400, 1.5, 1e308, float("inf"), "", "x" * 2000, "n1\nn2", "\x1b[31mred"),
        *(
            "\0",
            "\ud800",
            "\u202e",
            "../../etc/passwd",
            "a b=c",
            "[[[",
            [],
            {},
            [[]] * 300,
            {"t": {}},
            [None],
            ["x" * 500],
        ),
    ]
)


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(steward.adapters.wire.__path__):
        if found.name.endswith("messages"):
            yield importlib.import_module(f"steward.adapters.wire.{found.name}")


def _readers() -> dict[str, Callable[..., object]]:
    found = {"hello": handshake._hello_of, "terms": handshake._terms_of}
    for module in _modules():
        for name, value in vars(module).items():
            mine = inspect.isfunction(value) and value.__module__ == module.__name__
            if mine and name.endswith("_of") and not name.startswith("_"):
                found[name.removesuffix("_of")] = value
    return found


READERS = _readers()
GIVEN = {"node": NodeName("n1"), "here": NodeName("n1"), "now": 100.0}


def read(name: str, frame: Any) -> object:
    """As those who hear a frame call its reader."""
    _, *more = inspect.signature(READERS[name]).parameters
    return READERS[name](frame, *(GIVEN[word] for word in more))


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key)
        yield from places_of(inner, (*path, key))


@st.composite
def hurt(draw: st.DrawFn, good: Any) -> Any:
    """A good frame with something else, or nothing, in up to three places of it."""
    frame = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        places = list(places_of(frame))
        *path, last = draw(st.sampled_from(places)) if places else ("more",)
        target = frame
        for step in path:
            target = target[step]
        if isinstance(target, dict) and draw(st.integers(0, 4)) == 0:
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(draw(NASTY))
    return frame


def is_one_line(error: Exception) -> None:
    assert str(error).isprintable()
    assert len(str(error)) < 1000


def test_every_reader_of_frames_is_fuzzed() -> None:
    assert set(READERS) == set(SAMPLES)


@pytest.mark.parametrize("hearer", [Hearing, Agent.hear], ids=["head", "agent"])
def test_every_type_that_is_heard_has_a_sample(hearer: Callable[..., object]) -> None:
    heard = set(re.findall(r'case "([^"]+)"', inspect.getsource(hearer)))
    assert heard
    assert heard <= {sample["t"] for sample in SAMPLES.values() if "t" in sample} | BARE | {"opted"}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_sample_is_understood(name: str) -> None:
    assert read(name, copy.deepcopy(SAMPLES[name])) is not None


@pytest.mark.parametrize("name", sorted(SAMPLES))
@settings(max_examples=40, database=None, phases=(Phase.generate,))
@given(data=st.data())
def test_a_frame_with_anything_anywhere_is_understood_or_refused_in_one_line(name: str, data: st.DataObject) -> None:
    frame = data.draw(hurt(SAMPLES[name]))
    try:
        understood = read(name, frame)
    except Malformed as error:
        is_one_line(error)
        return
    assert "\x1b" not in repr(understood)


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("instead", [None, 7, "text", [], [1]], ids=repr)
def test_what_is_no_object_is_no_record(name: str, instead: object) -> None:
    if "frame" in inspect.signature(READERS[name]).parameters:
        return  # the wire itself gives objects only
    with pytest.raises((Malformed, AttributeError)):
        read(name, instead)


@pytest.mark.parametrize("depth", [200, 900, 990, 5000])
def test_a_frame_that_is_nested_deeply_is_refused_before_its_sender_is_known(depth: int) -> None:
    body = ('{"t":"hello","x":' + "[" * depth + "]" * depth + "}").encode()
    try:
        digest(unpack(body), PeerRole.AGENT, "nonce")
    except Permanent as error:
        is_one_line(error)


def test_a_frame_of_plain_depth_has_a_digest() -> None:
    frame: Frame = json.loads(json.dumps(SAMPLES["report"]))
    assert digest(frame, PeerRole.AGENT, "nonce") != digest(frame, PeerRole.HEAD, "nonce")
