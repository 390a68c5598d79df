"""How far the opted-in jobs of a node are, as a frame and back. Times travel as ages: no two clocks are compared."""

from collections.abc import Iterable, Mapping
from typing import Any

from steward.adapters.wire.codec import items, number, text, whole
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.messages import record_of
from steward.model.ids import JobId, NodeName
from steward.model.job_report import Progress
from steward.model.text import printable

MAX_JOBS = 64
MAX_PATH = 255
MAX_STEP = 10**18
_LONGEST_S = 1e9


def progress_frame(jobs: Iterable[Progress], now: float) -> Frame:
    """Everything that the node knows of its jobs now; times are by the clock of `now`."""
    return {"t": "progress", "jobs": [_record(one, now) for one in jobs][:MAX_JOBS]}


def progress_of(frame: Frame, node: NodeName, now: float) -> tuple[Progress, ...]:
    """With times by the clock of `now`. Raises Malformed."""
    return tuple(_progress(record_of(value), node, now) for value in items(frame, "jobs", MAX_JOBS))


def _record(one: Progress, now: float) -> dict[str, Any]:
    said = {
        "job": one.job,
        "restart": one.restart,
        "step": one.step,
        "stepped": _age(one.stepped, now),
        "pace_s": one.pace_s,
        "checkpoint": one.checkpoint if printable(one.checkpoint, MAX_PATH) == one.checkpoint else "",
        "checkpoint_step": one.checkpoint_step,
        "checkpointed": _age(one.checkpointed, now),
        "first_step": _age(one.first_step, now),
        "first": one.first,
        "quiet_s": one.quiet_s,
    }
    return {key: value for key, value in said.items() if value not in (None, "", 0.0) or key in ("step", "restart")}


def _progress(record: Mapping[str, Any], node: NodeName, now: float) -> Progress:
    return Progress(
        job=JobId(whole(record, "job", low=1)),
        restart=whole(record, "restart", high=10**6),
        node=node,
        step=_whole(record, "step"),
        stepped=_time(record, "stepped", now),
        pace_s=_seconds(record, "pace_s"),
        checkpoint=text(record, "checkpoint", MAX_PATH) if "checkpoint" in record else "",
        checkpoint_step=_whole(record, "checkpoint_step"),
        checkpointed=_time(record, "checkpointed", now),
        first_step=_time(record, "first_step", now),
        first=_whole(record, "first"),
        quiet_s=_seconds(record, "quiet_s") or 0.0,
        at=now,
    )


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else round(min(max(now - at, 1e-3), _LONGEST_S), 3)


def _whole(record: Mapping[str, Any], key: str) -> int | None:
    return None if record.get(key) is None else whole(record, key, high=MAX_STEP)


def _seconds(record: Mapping[str, Any], key: str) -> float | None:
    return None if record.get(key) is None else min(max(number(record, key), 0.0), _LONGEST_S)


def _time(record: Mapping[str, Any], key: str, now: float) -> float | None:
    age = _seconds(record, key)
    return None if age is None else now - age
