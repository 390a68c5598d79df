"""Hot spares: idle, verified nodes of a group in a reservation of ours, for jobs that are resumed.

No job ever runs in that reservation: when a resumed job is nudged, the nodes that it lacks are taken out of the
reservation, and the job is put first in the queue. Hot spares are not the spare nodes of fixed machines
(`policy/case/spares.py`).
"""

import zlib
from dataclasses import replace

from steward.model.action import FreeNodes, KeepNodes
from steward.model.ids import Key, NodeName
from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.reservation import Reservation, hot_name
from steward.model.resume import JobMemory, Lent
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.loans import LENT_FOR_S, lent_nodes
from steward.policy.facts.verdict import Standing, standing, worst_finding
from steward.policy.traits import is_idle

LEASE_S = 3600.0
"""The length of a reservation, which ends by itself if no head renews it."""
RENEW_S = 1200.0
_A_MOMENT_S = 0.1


def maintain_hot_spares(draft: Draft) -> None:
    """Bring the hot spares of every group to the wanted number."""
    _end_loans(draft)
    if draft.paused or not draft.seen.reservations_at:
        return
    counts = _counts(draft)
    for group in sorted(counts):
        _maintain_group(group, counts[group], draft)
    for name in sorted(draft.seen.reservations) if draft.may_clear_strays else ():
        found = draft.seen.reservations[name]
        if found.hot_group and found.hot_group not in counts:
            _reserve(found.hot_group, frozenset(), found, "no hot spares are kept in this group", draft)


def _end_loans(draft: Draft) -> None:
    for id in jobs_needing_attention(draft):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if mem.lent is not None and (_is_over(job, mem.lent) or draft.now >= mem.lent.at + LENT_FOR_S):
            draft.jobs[id] = replace(mem, lent=None)


def _is_over(job: Job | None, lent: Lent) -> bool:
    return job is None or not job.is_pending


def _counts(draft: Draft) -> dict[str, int]:
    """Return the wanted number of hot spares by group; empty if Steward may not act."""
    if not draft.may_touch_nodes or not draft.want.resume.enabled:
        return {}
    usual, own = draft.want.resume.hot_spares, draft.want.hot_spares
    counts = {group: own.get(group, usual) for group in draft.slots.group_sizes} if usual or own else {}
    return {group: count for group, count in counts.items() if count}


def _maintain_group(group: str, count: int, draft: Draft) -> None:
    found = draft.seen.reservations.get(hot_name(group))
    there = found.nodes if found is not None else frozenset()
    sound = frozenset(
        node for node in there - lent_nodes(draft) if _is_sound(node, draft) and _is_in_group(node, group, draft)
    )
    wanted = frozenset(sorted(sound)[:count])
    if len(wanted) < count:
        wanted |= _more_spares(group, count - len(wanted), wanted, draft)
    _reserve(group, wanted, found, f"{len(wanted)} of {count} hot spares of {group} for jobs that are resumed", draft)


def _more_spares(group: str, count: int, there: frozenset[NodeName], draft: Draft) -> frozenset[NodeName]:
    """Return up to `count` more idle nodes; none while resumed jobs (by setting: any jobs of its partitions) wait."""
    if any(_is_back_in_queue(draft.jobs[id], draft) for id in jobs_needing_attention(draft)):
        return frozenset()  # the resumed job may need the idle nodes
    reserved = {node for each in draft.seen.reservations.values() for node in each.nodes}
    members = [name for name, slot in draft.slots.repairable.items() if slot.group == group]
    nodes = draft.seen.nodes
    free = [name for name in members if name in nodes and is_idle(nodes[name]) and _is_sound(name, draft)]
    free = sorted(set(free) - reserved - there - lent_nodes(draft) - draft.overview.leaks.keys())
    parts = {part for name in members if name in nodes for part in nodes[name].partitions}
    waits = any(parts & set(job.partition.split(",")) for job in draft.overview.waiting)
    if waits and not draft.want.resume.hot_spares_while_waiting:
        return frozenset()
    api = draft.groups.get(group)
    if api is not None:
        serving = sum(1 for name in members if name in nodes and nodes[name].is_schedulable)
        count = max(0, min(count, serving - len(there) - api.goal.minimum))
    return frozenset(free[:count])


def _is_back_in_queue(mem: JobMemory, draft: Draft) -> bool:
    job = draft.seen.jobs.get(mem.id)
    return job is not None and bool(mem.nodes) and (job.is_pending or job.is_completing)


def _is_in_group(name: NodeName, group: str, draft: Draft) -> bool:
    return name in draft.slots.repairable and draft.slots.repairable[name].group == group


def _is_sound(name: NodeName, draft: Draft) -> bool:
    """Return whether the node is in service, passed its checks and has no known fault."""
    node = draft.seen.nodes.get(name)
    if node is None or not node.is_schedulable or draft.cases.open_of(name) is not None:
        return False
    return standing(node, draft).standing is Standing.FINE and worst_finding(draft.seen.agents.get(name), draft) is None


def _reserve(group: str, wanted: frozenset[NodeName], found: Reservation | None, text: str, draft: Draft) -> None:
    name, why = hot_name(group), Why(rule="hot.keep", text=text)
    there = found.nodes if found is not None else frozenset()
    old = found is not None and found.ends - draft.now < LEASE_S - RENEW_S
    if wanted and found is not None:
        draft.wake(found.ends - LEASE_S + RENEW_S + _A_MOMENT_S)
    if wanted == there and not (wanted and old):
        return
    if not wanted:
        draft.wish(FreeNodes(key=Key(f"cool:{name}"), why=why, name=name), 1.0)
        return
    key = Key(f"hot:{group}:{zlib.crc32(','.join(sorted(wanted)).encode()):08x}")
    if draft.wish(KeepNodes(key=key, why=why, name=name, nodes=wanted, seconds=LEASE_S), 60.0) and wanted != there:
        draft.tell("group.hot_spares", f"{group}: {fold(wanted)}: {text}")
