"""Choose the slots to remove when a group shrinks: the least harmful ones, or random ones (as HyperPod does)."""

import hashlib
import heapq
from collections.abc import Collection, Sequence

from steward.model.capacity_policy import Victims
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.slot import COMING, SlotRecord
from steward.policy.draft import Draft

_FAILED, _DRAINED, _IDLE = range(len(COMING), len(COMING) + 3)


def choose_victims(slots: Collection[SlotRecord], count: int, draft: Draft) -> list[SlotRecord]:
    """Return `count` of these slots, or all if there are fewer, by the setting `capacity.victims`."""
    if draft.want.capacity.victims is Victims.RANDOM:
        return _at_random(slots, count, draft)
    return least_harm(slots, count, draft)


def _at_random(slots: Collection[SlotRecord], count: int, draft: Draft) -> list[SlotRecord]:
    """Return random slots, the same ones for the same operation."""
    known = sorted(slots, key=lambda slot: slot.logical)
    groups = {slot.group for slot in known}
    wishes = [op for op in draft.operations.values() if groups & op.after.keys()]
    last = max(wishes, key=lambda op: (op.at, op.id), default=None)
    seed = f"{last.id if last else ''}:{','.join(slot.logical for slot in known)}"
    shuffled = sorted(known, key=lambda slot: hashlib.sha256(f"{seed}:{slot.logical}".encode()).digest())
    return shuffled[: max(0, count)]


def least_harm(slots: Collection[SlotRecord], count: int, draft: Draft) -> list[SlotRecord]:
    """Return the slots to remove: first those without work (not yet in service, failed, drained, idle; newest first).

    After them come the slots on which the least work is lost.
    """
    busy = _jobs_by_node(slots, draft)
    ranked = sorted(
        (slot for slot in slots if slot.node not in busy), key=lambda s: (_rank(s, draft), -s.created, -s.serial)
    )
    chosen = ranked[: max(0, count)]
    working = {slot.node: slot for slot in slots if slot.node in busy}
    return chosen + _cheapest(working, busy, max(0, count) - len(chosen), draft)


def _rank(slot: SlotRecord, draft: Draft) -> int:
    if slot.is_coming:
        return COMING.index(slot.step)  # slots in earlier steps go first
    if is_failed(slot.node, draft):
        return _FAILED
    node = draft.seen.nodes.get(slot.node)
    return _DRAINED if node is not None and node.is_drain else _IDLE


def is_failed(node: NodeName, draft: Draft) -> bool:
    """Return whether the node is under repair, down, or without its agent."""
    view = draft.seen.agents.get(node)
    is_silent = view is None or not view.connected
    return is_silent or draft.cases.open_of(node) is not None or _is_down(node, draft)


def _jobs_by_node(slots: Collection[SlotRecord], draft: Draft) -> dict[NodeName, list[Job]]:
    """Return the jobs on each busy node; a job on a node that is down is lost already."""
    # A busy node counts even without a known job: nodes are read more often than all jobs.
    serving = {slot.node for slot in slots if not slot.is_coming and not _is_down(slot.node, draft)}
    found = {name: list[Job]() for name in serving if _is_busy(name, draft)}
    for id in sorted(draft.seen.jobs):
        job = draft.seen.jobs[id]
        if job.is_active:
            for node in job.nodes & serving:
                found.setdefault(node, []).append(job)
    return found


def _is_busy(name: NodeName, draft: Draft) -> bool:
    node = draft.seen.nodes.get(name)
    return node is not None and node.is_busy


def _is_down(name: NodeName, draft: Draft) -> bool:
    node = draft.seen.nodes.get(name)
    return node is not None and node.is_down


def _cheapest(
    slots: dict[NodeName, SlotRecord], busy: dict[NodeName, list[Job]], count: int, draft: Draft
) -> list[SlotRecord]:
    """Return `count` busy slots, each time the one whose removal loses the least further work."""
    # A job that loses one node has lost its work: removing its other nodes costs less after that.
    lost: set[JobId] = set()
    chosen: dict[NodeName, SlotRecord] = {}
    queue = [(_harm(busy[name], lost, draft), -slot.created, -slot.serial, name) for name, slot in slots.items()]
    heapq.heapify(queue)
    while queue and len(chosen) < count:
        *_, name = heapq.heappop(queue)
        if name in chosen:
            continue
        chosen[name] = slots[name]
        fresh = [job for job in busy[name] if job.id not in lost]
        lost.update(job.id for job in fresh)
        for other in {node for job in fresh for node in job.nodes & slots.keys()} - chosen.keys():
            slot = slots[other]
            heapq.heappush(queue, (_harm(busy[other], lost, draft), -slot.created, -slot.serial, other))
    return list(chosen.values())


def _harm(jobs: Sequence[Job], lost: Collection[JobId], draft: Draft) -> float:
    """Return the node-seconds of work of these jobs, except the jobs that are lost already."""
    return sum(max(0.0, draft.now - (job.started or draft.now)) * len(job.nodes) for job in jobs if job.id not in lost)
