"""How the runs of remembered jobs end, as the head sees it: since when each cleans up, and since when it is over.

On our own clock: Slurm may have ended a run long before we could look, or by a clock that was set since.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from steward.model.ids import JobId
from steward.model.job import Job
from steward.model.resume import JobMemory, Leaving
from steward.policy.case.cases import BLIND_S
from steward.policy.draft import Draft

_LOOKED = "ends:looked"


def end_of(mem: JobMemory) -> Leaving:
    """The end of the job's last run as far as it was seen; nothing yet of a run that another one followed."""
    end = mem.leaving
    return end if end is not None and end.restart == mem.restarts else Leaving(restart=mem.restarts)


def cleans_up_since(job: Job, draft: Draft) -> float:
    """Since when its last run is seen to clean up; it does so now."""
    return _first_seen("since", job, draft)


def over_since(job: Job, draft: Draft) -> float:
    """Since when its last run is seen to be over, but for the time in which nobody could look; it is over now."""
    return _first_seen("over", job, draft)


def done_since(job: Job, draft: Draft) -> float:
    """The same of a run that is over and has cleaned up; it is so now."""
    return _first_seen("done", job, draft)


def clean_since(job: Job, draft: Draft) -> float:
    """Since when its last run is seen clean and back in the queue; it is so now."""
    return _first_seen("clean", job, draft)


def _first_seen(what: Literal["since", "over", "done", "clean"], job: Job, draft: Draft) -> float:
    """When that was first seen of the end of the job's last run, which is so now."""
    mem = draft.jobs[job.id]
    end = end_of(mem)
    at: float | None = getattr(end, what)
    if at is not None:
        return at
    now: dict[str, Any] = {what: draft.now}
    draft.jobs[job.id] = replace(mem, leaving=replace(end, **now))
    return draft.now


def is_looked_into(mem: JobMemory) -> bool:
    """Whether its run is over, and it is not decided yet what follows, or not done."""
    return mem.ended is None and mem.pending_from is None and end_of(mem).over is not None


def forgive_blind_time(ids: Iterable[JobId], draft: Draft) -> None:
    """Time without a fresh picture (the head was away, Slurm silent, the clock set forward) is none in which an end is
    looked into."""
    gap = draft.now - draft.noted.get(_LOOKED, draft.now)
    for id in ids if gap > BLIND_S else ():
        mem = draft.jobs[id]
        end = end_of(mem)
        if is_looked_into(mem) and end.over is not None:
            done = end.done + gap if end.done is not None else None
            draft.jobs[id] = replace(mem, leaving=replace(end, over=end.over + gap, done=done))


def note_look(ids: Iterable[JobId], draft: Draft) -> None:
    """Remember, while an end is looked into, about when that could last be done."""
    at = draft.noted.get(_LOOKED)
    if not any(is_looked_into(draft.jobs[id]) for id in ids):
        draft.noted.drop([_LOOKED] if at is not None else [])
    elif at is None or draft.now - at > BLIND_S / 2:
        draft.noted[_LOOKED] = draft.now
