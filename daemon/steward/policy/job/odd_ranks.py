"""Ranks for which a job's others wait: what is remembered of them, and what follows if the job then ends by itself.

A job that wrote no `hang=` is never ended for them: what they do may be right. But if it fails while the others wait,
as most GPU jobs do after ten minutes (NCCL's own limit), the node of these ranks is evidence like a failed check.
"""

from dataclasses import replace

from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.resume import JobMemory, OddRanks
from steward.model.text import span
from steward.policy.draft import Draft
from steward.policy.facts.blame import EXCLUDE_S
from steward.policy.facts.standing_still import Still, blamed
from steward.policy.job.evidence import Evidence, Reach

ODD_S = 120.0
"""So long after its other ranks were last seen to wait for those of a node that node may explain that the job fails."""


def evidence_of_odd_ranks(reach: Reach, mem: JobMemory, failed_at: float) -> tuple[Evidence, ...]:
    """Return the evidence that a job that ended by itself had stood still, as its ranks waited for those of a node."""
    odd = mem.odd
    if odd is None or odd.node not in reach.held or odd.restart != mem.restarts or odd.follow_job:
        return ()
    until = failed_at if odd.until is None else min(odd.until, failed_at)
    text = f"{odd.node}: the job stood still for {span(until - odd.since)}: {odd.text}"
    return (Evidence(node=odd.node, text=text, at=until),) if odd.since <= failed_at <= until + ODD_S else ()


def node_of_odd_ranks(still: Still, job: Job) -> NodeName | None:
    """Return the node that may be why the job stands still; None if none is."""
    return blamed(still, job.nodes) if still.may_be_nodes else None


def note_odd_ranks(job: Job, still: Still | None, draft: Draft, *, is_common: bool) -> None:
    """Remember the ranks for which the others wait now; not while other jobs stand still, too (`is_common`)."""
    mem = draft.jobs[job.id]
    known, node = mem.odd, None if still is None else node_of_odd_ranks(still, job)
    if is_common:
        draft.jobs[job.id] = replace(mem, odd=None)
    elif still is None or node is None:
        draft.jobs[job.id] = without_odd_ranks(mem, draft)
    elif known is None or (known.node, known.restart) != (node, mem.restarts) or known.until is not None:
        follow = known is not None and known.restart < mem.restarts and known.node != node and _is_recent(known, draft)
        odd = OddRanks(node=node, text=still.odd, restart=mem.restarts, since=still.since, follow_job=follow)
        draft.jobs[job.id] = replace(mem, odd=odd)


def _is_recent(odd: OddRanks, draft: Draft) -> bool:
    return odd.until is None or odd.until > draft.now - EXCLUDE_S


def without_odd_ranks(mem: JobMemory, draft: Draft) -> JobMemory:
    """Return the memory in which no rank is waited for any more."""
    if mem.odd is None or mem.odd.until is not None:
        return mem
    return replace(mem, odd=replace(mem.odd, until=draft.now))


def what_if_it_fails(mem: JobMemory) -> str:
    """Return what follows if the job ends by itself, with what leads to it; empty if that is as for any failure."""
    odd = mem.odd
    if odd is None or odd.until is not None or odd.follow_job or mem.mode.hang:
        return ""
    return f"; if it fails of it, it starts again without {odd.node} (hang=1 would not wait for that)"
