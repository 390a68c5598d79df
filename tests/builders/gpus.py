"""GPUs as a child of the agent told of them once, and with a fault."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from steward.adapters.node.nvml import gpu_of
from steward.checks.check import Check, Facts, Judgement, Past
from steward.checks.limits import Limits
from steward.model.ids import NodeName
from steward.model.probe import Process, Raw

RECORDINGS = Path(__file__).parents[1] / "recordings" / "checks" / "gpu"


def recorded(name: str) -> Raw:
    return Raw(gpus=tuple(gpu_of(record) for record in json.loads((RECORDINGS / f"{name}.json").read_text())["gpus"]))


def with_fault(raw: Raw, index: int = 1, **fields: Any) -> Raw:
    """The same with other values of one GPU."""
    gpus = raw.gpus or ()
    return replace(raw, gpus=tuple(replace(gpu, **fields) if gpu.index == index else gpu for gpu in gpus))


def seen(check: Check, *raws: Raw, past: Past | None = None, **limit: float) -> Judgement:
    """The check's word; `limit` has the site's thresholds, `__` for the dots of their names."""
    facts = Facts(node=NodeName("n1"), limits=Limits(values={key.replace("__", "."): n for key, n in limit.items()}))
    given = past or Past(now=1000.0)
    return check.verdict(raws, facts, given)


def process(pid: int, name: str, parent: int = 1, uid: int = 0) -> Process:
    return Process(pid=pid, parent=parent, uid=uid, state="S", name=name, started=0.0)
