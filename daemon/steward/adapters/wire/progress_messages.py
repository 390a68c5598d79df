"""How far the opted-in jobs of a node are, as a frame and back. Times travel as ages: no two clocks are compared."""

from collections.abc import Iterable

from steward.adapters.wire.codec import Codec, items
from steward.adapters.wire.frames import Frame
from steward.model.ids import NodeName
from steward.model.job_report import Progress

MAX_JOBS = 64
_PROGRESS = Codec(Progress)


def progress_frame(jobs: Iterable[Progress], now: float) -> Frame:
    """Everything that the node knows of its jobs now; times are by the clock of `now`."""
    return {"t": "progress", "jobs": [_PROGRESS.write(one, now) for one in jobs][:MAX_JOBS]}


def progress_of(frame: Frame, node: NodeName, now: float) -> tuple[Progress, ...]:
    """With times by the clock of `now`. Raises Malformed."""
    return tuple(_PROGRESS.read(one, now, node=node, at=now) for one in items(frame, "jobs", MAX_JOBS))
