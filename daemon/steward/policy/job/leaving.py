"""How the runs of remembered jobs end, as the head sees it: since when each cleans up, and since when it is over.

On our own clock: Slurm may have ended a run long before we could look, or by a clock that was set since.

A job that lost a node is cleaned up on the others at once: what tries to reach the dead node there is ended. The other
nodes' slurmstepds tell the job's srun how its tasks ended, six times, each until nobody answered: 21 s when its host is
dead, 70 s when it is frozen. They stay COMPLETING meanwhile, and the requeued job cannot start.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from steward.model.action import LetGo
from steward.model.case import Case
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.resume import Bystander, JobMemory, Leaving
from steward.model.why import Why
from steward.policy.case.cases import BLIND_S
from steward.policy.case.scene import HARD
from steward.policy.draft import Draft
from steward.policy.job.at_rest import restless


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


def bystander(job: Job, draft: Draft) -> Bystander:
    """What is remembered of a job that is not to be resumed."""
    known = draft.bystanders.get(job.id)
    if known is None or known.submitted != job.submitted:
        known = Bystander(since=draft.now, submitted=job.submitted)
    return known


def clean_bystander_since(job: Job, draft: Draft) -> float:
    """Since when the last run of such a job is seen clean and back in the queue; it is so now."""
    known = bystander(job, draft)
    end = known.leaving
    if end is not None and end.restart == job.restarts and end.clean is not None:
        return end.clean
    draft.bystanders[job.id] = replace(known, leaving=Leaving(restart=job.restarts, clean=draft.now))
    return draft.now


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
    gap = draft.now - draft.head.ends if draft.head.ends is not None else 0.0
    for id in ids if gap > BLIND_S else ():
        mem = draft.jobs[id]
        end = end_of(mem)
        if is_looked_into(mem) and end.over is not None:
            done = end.done + gap if end.done is not None else None
            draft.jobs[id] = replace(mem, leaving=replace(end, over=end.over + gap, done=done))


def note_look(ids: Iterable[JobId], draft: Draft) -> None:
    """Remember, while an end is looked into, about when that could last be done."""
    at = draft.head.ends
    if not any(is_looked_into(draft.jobs[id]) for id in ids):
        draft.head = replace(draft.head, ends=None) if at is not None else draft.head
    elif at is None or draft.now - at > BLIND_S / 2:
        draft.head = replace(draft.head, ends=draft.now)


LINGERS_S = 0.3
"""Healthy nodes have cleaned up within 0.1 s of a kill."""
AGAIN_S = 1.0
GIVE_UP_S = 90.0
"""Slurm's own tries are over by then: what still holds the node is something else."""
LOST_BEFORE_S = 60.0
"""A node that was lost longer before the run's end is not what its end waits for."""


def let_go(draft: Draft) -> None:
    """For every opted-in job that Slurm is ending after we took a lost node of its run out of service."""
    for id in restless(draft):
        job = draft.seen.jobs.get(id)
        if job is not None and job.is_completing:
            _let_go(job, draft.jobs[id], draft)


def _let_go(job: Job, mem: JobMemory, draft: Draft) -> None:
    over = cleans_up_since(job, draft)
    cases = _lost(mem, over, draft)
    nodes = frozenset(node for node in mem.nodes - {case.node for case in cases} if _lingers(node, draft))
    if not cases or not nodes or draft.now >= over + GIVE_UP_S:
        return
    if draft.now < over + LINGERS_S:
        draft.wake(over + LINGERS_S)
        return
    facts = tuple(f"{case.node}: case {case.id}, {case.why.text}" for case in cases)
    why = Why(
        rule="job.let_go",
        text="sound nodes of the run still clean up, because Slurm waits there for the lost one",
        evidence=facts,
    )
    key = Key(f"letgo:{job.id}:{mem.restarts}")
    if draft.wish(LetGo(key=key, why=why, job=job.id, nodes=nodes, restart=mem.restarts, before=over), AGAIN_S):
        text = f"job {job.id}: the rest of its lost run is ended on {fold(nodes)}"
        draft.tell("job.let_go", f"{text}: {why}", once=f"letgo:{job.id}:{mem.restarts}", job=job.id)


def _lost(mem: JobMemory, over: float, draft: Draft) -> list[Case]:
    """Cases that took a node of this run down by force, shortly before its end or since."""
    since = max(over - LOST_BEFORE_S, mem.started or 0.0)
    cases = [c for node in mem.nodes for c in draft.cases.of(node) if c.trigger in HARD]
    return sorted((c for c in cases if c.marked is not None and c.marked >= since), key=lambda c: (c.node, c.id))


def _lingers(name: NodeName, draft: Draft) -> bool:
    """Slurm waits for it, and its agent can be told."""
    node, view = draft.seen.nodes.get(name), draft.seen.agents.get(name)
    return node is not None and "COMPLETING" in node.flags and view is not None and view.connected
