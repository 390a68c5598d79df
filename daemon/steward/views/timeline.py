"""A job's time cut into phases: every moment from the begin of its first run to the end of its last is in exactly one.

An instant that nobody saw ends no phase: its time goes to the phase that comes next, and `unknown` names it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from steward.model.ledger import Ending, Phase, Run, Segment


def timeline(runs: Sequence[Run], now: float) -> tuple[Segment, ...]:
    """The timeline of one job, whose runs are in order; the last segment of a running one ends at `now`."""
    found: list[Segment] = []
    at = min((run.started for run in runs), default=now)
    for run, follower in [*pairwise(runs), *((run, None) for run in runs[-1:])]:
        end = max(at, _end(run, follower, now))
        found += _segments(run, at, end)
        at = end
    return tuple(found)


def clipped(segments: Iterable[Segment], since: float, until: float) -> tuple[Segment, ...]:
    """The parts of the segments that lie between two moments."""
    cut = (replace(one, begin=max(one.begin, since), end=min(one.end, until)) for one in segments)
    return tuple(one for one in cut if one.begin < one.end)


def unknown(run: Run, follower: Run | None) -> tuple[str, ...]:
    """The instants between a run's fault and the next one's first step that nobody saw."""
    if not run.was_hit:
        return ()
    seen = {"fault": run.fault, "detected": run.detected, "marked": run.marked, "decided": run.decided}
    if run.ending is Ending.REQUEUED:
        seen["eligible"] = run.eligible
    if follower is not None:
        seen["first_step"] = follower.first_step
    return tuple(name for name, at in seen.items() if at is None)


def _end(run: Run, follower: Run | None, now: float) -> float:
    if follower is not None:
        return follower.started
    return run.ended if run.ending is Ending.OVER and run.ended is not None else now


def _segments(run: Run, begin: float, end: float) -> list[Segment]:
    """They touch each other, and cover all from `begin` to `end`."""
    found: list[Segment] = []
    left = _left(run)
    held_until = end if left is None else min(max(left, begin), end)
    at = begin
    for phase, instant in _bounds(run, end):
        upto = at if instant is None else min(max(instant, at), end)
        for first, last, held in ((at, min(upto, held_until), True), (max(at, held_until), upto, False)):
            if first < last:
                found.append(Segment(phase=phase, begin=first, end=last, nodes=len(run.nodes), held=held, run=run.key))
        at = upto
    return found


def _left(run: Run) -> float | None:
    """When it had its nodes no more. Slurm's ends are whole seconds: a run was there until its fault."""
    if run.ended is None or run.fault is None or not run.was_hit:
        return run.ended
    return max(run.ended, run.fault)


def _bounds(run: Run, end: float) -> list[tuple[Phase, float | None]]:
    """Each phase of the run with the instant at which it ends, in their order; None: nobody saw it. Work ends with the
    nodes."""
    left, start = _left(run), (Phase.START, run.first_step)
    if not run.was_hit:
        return [start, (Phase.WORK, end if left is None else left), (Phase.QUEUE, end)]
    known = (at for at in (run.fault, run.detected, run.decided, run.ended) if at is not None)
    stopped = min(next(known, end), end if left is None else left)
    kept = run.kept_until if run.steps_redone is not None else stopped
    kept = None if kept is None else min(kept, stopped)
    after = [(Phase.DETECT, run.detected), (Phase.DECIDE, run.decided)]
    last = Phase.QUEUE if run.ending is Ending.REQUEUED and run.eligible is not None else Phase.RELEASE
    return [start, (Phase.WORK, kept), (Phase.REDO, stopped), *after, (Phase.RELEASE, run.eligible), (last, end)]
