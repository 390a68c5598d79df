"""What setbacks cost, as node-seconds: by kind, user, partition, node and week."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from .estimate import Draw, Interval, LostWork, Moments, interval, plus, samples
from .history import AGAIN, HANG, KINDS, LAUNCH, LOST, PastJobs, Setback

WEEK_S = 7 * 86400
_USUALLY_NOTICED = 1.2
"""SlurmdTimeouts from a node's fault until Slurm sets it DOWN: of a run that was shorter only a part is taken."""
_PING = 1 / 3
"""How often Slurm looks at each node, in SlurmdTimeouts: by so much differs when it notices."""
WAYS: dict[str, Callable[[Setback], str]] = {
    "user": lambda one: one.run.user,
    "partition": lambda one: one.run.partition,
    "node": lambda one: one.node,
}


def unseen(lost: Sequence[Setback], timeout_s: float) -> Moments:
    """Return the time in which nodes of dead jobs were held, because Slurm had not yet noticed the fault."""
    usual = _USUALLY_NOTICED * timeout_s
    held = sum(one.weight * min(1.0, one.run.seconds / usual) for one in lost)
    variance = sum(one.weight**2 for one in lost) * (_PING * timeout_s) ** 2 / 12
    most = sum(one.weight * min(one.run.seconds, 2 * timeout_s) for one in lost)
    return lambda draw: (held * draw["slurm_notices"] * timeout_s, variance, most)


def lost_work(setbacks: Sequence[Setback], timeout_s: float) -> Moments:
    """Return the work since the last checkpoint."""
    usual = _USUALLY_NOTICED * timeout_s
    runs = ((one.family, one.weight, one.run.seconds - (usual if one.kind == LOST else 0.0)) for one in setbacks)
    return LostWork(runs).moments


def hanging(suspected: Sequence[Setback], found_s: Callable[[Draw], float] = lambda _: 0.0) -> Moments:
    """Return the time after each hang, less the time in which it is found.

    A hang begins at any time of the work that such a job has, and a suspected run is a hang or long for another reason.
    """
    weights = sum(one.weight for one in suspected)
    idle = sum(one.weight * (one.run.seconds - one.usual_s / 2) for one in suspected)
    squares = sum((one.weight * (one.run.seconds - one.usual_s / 2)) ** 2 for one in suspected)
    begins = sum((one.weight * one.usual_s) ** 2 for one in suspected) / 12
    most = sum(one.weight * one.run.seconds for one in suspected)

    def moments(draw: Draw) -> tuple[float, float, float]:
        share = draw["is_hang"]
        mean = max(0.0, share * (idle - weights * found_s(draw)))
        return mean, share * begins + share * (1 - share) * squares, most

    return moments


def cost(kind: str, own: Sequence[Setback], timeout_s: float) -> Moments:
    """Return what these setbacks of one kind cost."""
    if kind in (LAUNCH, AGAIN):
        total = float(sum(one.weight * one.run.seconds for one in own))
        return lambda _: (total, 0.0, total)
    if kind == HANG:
        return hanging(own)
    if kind == LOST:
        both = plus(unseen(own, timeout_s), lost_work(own, timeout_s))
        most = sum(one.weight * one.run.seconds for one in own)
        return lambda draw: (*both(draw)[:2], most)
    return lost_work(own, timeout_s)


def costs_by_kind(past: PastJobs, middle: Draw, drawn: Sequence[Draw]) -> dict[str, tuple[int, Interval]]:
    """Return how many setbacks of each kind there were, and what they cost."""
    found = {}
    for kind in KINDS:
        own = [one for one in past.setbacks if one.kind == kind]
        moments = cost(kind, own, past.site.slurmd_timeout_s)
        mean = moments(middle)[0]
        low, _, high = interval(samples(moments, drawn))
        found[kind] = len(own), Interval(min(low, mean), mean, max(mean, high))
    return found


def costs_by(past: PastJobs, middle: Draw, key: Callable[[Setback], str]) -> dict[str, tuple[int, float]]:
    """Return how many setbacks each user, partition or the like had, and what they cost; the dearest first."""
    sums: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for one in past.setbacks:
        count, node_s = sums[key(one)]
        sums[key(one)] = count + 1, node_s + cost(one.kind, [one], past.site.slurmd_timeout_s)(middle)[0]
    return dict(sorted(sums.items(), key=lambda item: (-item[1][1], item[0])))


def week_of(one: Setback) -> str:
    """Return the week of the setback's end, as a number of weeks since 1970 and its kind."""
    return f"{one.run.ended // WEEK_S} {one.kind}"
