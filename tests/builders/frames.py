"""One good value for each reader of frames, and the readers themselves."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import steward.adapters.wire
from steward.adapters.wire import handshake
from steward.model.ids import NodeName
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
OPTED = {"job": 7, "uid": 1000, "mode": MODE, "restart": 0, "at": 1.0, "elastic": "8:2,grace=30", "has_script": True}
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
    "terms": {
        "t": "welcome",
        "interval": 1.0,
        "late_after": 3.0,
        "now": 1.0,
        "defaults": [],
        "warning": "off",
        "epoch": 7,
    },
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
    "let_go": {"t": "let_go", "job": 7, "uid": 1000, "restart": 0, "before": 1.0, "why": "lost"},
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
    "sight": {
        "t": "sight",
        "steps": [
            {
                "job": 7,
                "step": "0",
                "step_s": 60.0,
                "groups": [{"doing": "waits", "ranks": 1, "for_s": 9.0, "rank": 0}],
                "log": [{"state": "late", "rule": "steps", "for_s": 301.0, "limit_s": 300.0, "rank": 0, "text": ""}],
                "slow": [
                    {"rank": 3, "gpu": "GPU-1", "for_s": 660.0, "why": "too hot", "mhz": 1050, "others_mhz": 1900}
                ],
            }
        ],
    },
    "stacks": {"t": "stacks", "job": 7, "uid": 1000, "name": "hang-7", "signal": "USR1"},
    "bundle": {"t": "bundle", "name": "hang-7", "offset": 0, "text": "one\n", "last": True},
    **ELASTIC_FRAMES,
    "follower_greeting": {"t": "following", "leader": "head1:6861", "again_s": 0.5},
    "passed_request": {
        "t": "passed_request",
        "door": "http",
        "method": "GET",
        "path": "/v1/status",
        "query": "wait_s=5",
        "headers": ["host: head2"],
        "client": "127.0.0.1",
    },
    "passed_answer": {"t": "passed_answer", "status": 200, "headers": ["content-type: application/json"]},
    "body": {"t": "body", "data": "e30=", "is_last": True},
    "defaults": {"defaults": [{"partition": "gpu", "account": "", "qos": "", "mode": MODE}]},
}
"""One good value for each reader, by its name without `_of`."""


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
