"""The rules that both adapters check before they write to Slurm: may a node or job be changed, and by what id."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from steward.adapters.process import show
from steward.adapters.slurm.include import PartitionLines
from steward.model import comment
from steward.model.action import NudgeJob
from steward.model.elastic import replica_of
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.mark import Mark, first_token
from steward.model.node import Node
from steward.model.partition import Partition
from steward.model.text import printable
from steward.ports import Permanent, Retryable, Stale

_FEATURE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def may_take_out(
    nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName], cleared: Collection[NodeName] = ()
) -> None:
    """Raise Stale, with the reason, if one of these nodes was taken out of service by a person, or is unknown.

    Of the nodes `cleared`, a drain without a reason is ours.
    """
    for name in wanted:
        node = nodes.get(name)
        if node is None:
            raise Stale(f"node {name} is not in Slurm any more")
        if node.is_foreign and not (name in cleared and node.has_lost_reason):
            raise Stale(f"node {name} was taken out of service by {_owner(node)}: left alone")


def may_give_back(nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName], mark: Mark, command: str) -> None:
    """Raise Stale unless each of these nodes is out of service with `mark`, or `command`, as its reason."""
    for name in wanted:
        _may_give_back(nodes.get(name), name, mark, command)


def _may_give_back(node: Node | None, name: NodeName, mark: Mark, command: str) -> None:
    """Raise Stale unless the node is out of service with `mark`, or `command`, as its reason."""
    if node is None:
        raise Stale(f"node {name} is not in Slurm any more")
    if node.reason is None:
        raise Stale(f"node {name} has no reason {command or mark} any more (its state: {_state(node)})")
    if first_token(node.reason.text) not in {str(mark), *([command] if command else [])}:
        raise Stale(f"node {name} was taken out of service by {_owner(node)}, not by {mark}: left alone")


def is_the_run(job: Job, restart: int | None) -> None:
    """Raise Stale if the job is not in the run with the restart count `restart` (None: any run)."""
    if restart is not None and job.restarts != restart:
        raise Stale(f"job {job.shown_id} was restarted meanwhile (restart {job.restarts}, not {restart}): left alone")


def may_requeue(job: Job, parts: Iterable[Job] = (), *, told_at: float | None = None) -> None:
    """Raise Stale if the job is pending, was cancelled or completed: Slurm would run it again.

    A pending job may be requeued if one of its other `parts` is left over, and a job that completed after `told_at`,
    when it was told to make room. Raise Retryable while it is completing without a visible final state (22.05):
    its user may have cancelled it.
    """
    if job.is_pending and not any(part.is_left_over for part in parts):
        raise Stale(f"job {job.shown_id} is pending already ({show(job.reason)})")
    if job.state is JobState.CANCELLED or (job.state is JobState.COMPLETED and not job.made_room(told_at)):
        raise Stale(f"job {job.shown_id} is {job.state.value}: left alone")
    if job.state is JobState.UNKNOWN:
        raise Retryable(f"job {job.shown_id} still cleans up")


def to_nudge(known: Mapping[JobId, Job], nudges: Sequence[NudgeJob]) -> list[tuple[Job, NudgeJob]]:
    """Return the jobs that may be nudged, with their nudges. Raise as `may_nudge` does for a single one."""
    waiting: list[tuple[Job, NudgeJob]] = []
    for one in nudges:
        try:
            job = require_job(known, one.job)
            is_the_run(job, one.restart)
            may_nudge(job, release=one.release)
        except (Stale, Retryable):
            if len(nudges) == 1:
                raise
        else:
            waiting.append((job, one))
    return waiting


def may_nudge(job: Job, *, release: bool) -> None:
    """Raise Stale unless the job is pending, or if a person holds it and `release` is wanted.

    Only Slurm's own holds are ours to lift. Raise Retryable while the job is completing.
    """
    if job.is_completing:
        raise Retryable(f"job {job.shown_id} still cleans up")
    if not job.is_pending:
        raise Stale(f"job {job.shown_id} is {job.state.value}, not pending")
    if release and job.is_held and not job.is_held_by_slurm:
        raise Stale(f"job {job.shown_id} is held ({show(job.reason)}): left alone")


def new_comment(job: Job, text: str) -> str:
    """Return the job's whole admin comment with `text` as our part.

    Raise Retryable while the job is completing, Permanent for a text that is not ours or not one short line.
    """
    if not text.startswith(comment.PREFIX) or text != printable(text, comment.LONGEST) or comment.BETWEEN in text:
        raise Permanent(f"not a comment of ours: {show(text)}")
    if job.is_completing:
        raise Retryable(f"job {job.shown_id} still cleans up")
    return comment.with_own_part(job.admin_comment, text)


def may_signal(job: Job) -> None:
    """Raise Stale unless the job runs."""
    if not job.is_active:
        raise Stale(f"job {job.shown_id} is {job.state.value}, it does not run")


def may_cancel_replica(job: Job, run: JobId) -> None:
    """Raise Stale if the job is over, Permanent if it is no replica of this run."""
    known = replica_of(job.comment)
    if known is None or known[0] != run:
        raise Permanent(f"job {job.shown_id} is not a replica of the elastic run {run}: left alone")
    if not job.is_pending and not job.is_active:
        raise Stale(f"job {job.shown_id} is {job.state.value}")


def may_set_nice(job: Job) -> None:
    """Raise Stale if the job is over, or held."""
    # Slurm (22.05) gives a held job a priority for a new nice value, and so starts it.
    if not job.is_pending and not job.is_active:
        raise Stale(f"job {job.shown_id} is {job.state.value}")
    if job.is_pending and not job.priority:
        raise Stale(f"job {job.shown_id} is held")


def limit_minutes(job: Job, limit_s: float, longest: int | None) -> int | None:
    """Return the time limit to set, up to the partition's `longest` in minutes; None if the job has as much already."""
    if job.time_limit_s is None:
        return None
    minutes = math.ceil(limit_s / 60.0)
    minutes = minutes if longest is None else min(minutes, longest)
    return minutes if minutes * 60.0 > job.time_limit_s else None


def may_forget(nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName]) -> tuple[list[NodeName], list[NodeName]]:
    """Return the dynamic nodes to delete, and those that have jobs; leave out nodes of slurm.conf."""
    # Slurm 22.05 also deletes a node of slurm.conf, and crashes later because of that
    known = [nodes[name] for name in sorted(set(wanted)) if name in nodes and nodes[name].is_dynamic]
    return [node.name for node in known if not node.is_busy], [node.name for node in known if node.is_busy]


Features = tuple[frozenset[str], frozenset[str]]
"""The available and the active features of a node."""


def by_features(
    nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName], prefix: str, word: str
) -> dict[Features, list[NodeName]]:
    """Return the nodes to change, by the features that they should have.

    To change are nodes that do not have `prefix` + `word` as their only feature with that prefix (no word: none). Raise
    Permanent for text that would be more than one feature.
    """
    if not _FEATURE.fullmatch(prefix + word) or not prefix:
        raise Permanent(f"not a feature: {show(prefix + word)}")
    ours = frozenset({prefix + word} if word else ())
    found: dict[Features, list[NodeName]] = {}
    for node in (nodes[name] for name in sorted(set(wanted)) if name in nodes):
        now = (node.features, node.active_features)
        available, active = (frozenset(f for f in each if not f.startswith(prefix)) | ours for each in now)
        if now != (available, active):
            found.setdefault((available, active), []).append(node.name)
    return found


def may_write(
    lines: PartitionLines, ours: Set[str], partitions: Mapping[str, Partition], nodes: Mapping[NodeName, Node]
) -> None:
    """Raise Permanent for a partition in the site's own slurm.conf, Stale for a missing node.

    With either of them slurmctld would not start any more. `ours` are the partitions of our file as it was.
    """
    if theirs := sorted((lines.states.keys() & partitions.keys()) - ours):
        raise Permanent(
            f"partition {theirs[0]} is in the site's own slurm.conf: name it in capacity.owned_partitions, or take it "
            "out of slurm.conf"
        )
    if gone := sorted(lines.nodes - nodes.keys()):
        raise Stale(f"node {gone[0]} is not in Slurm any more: no partition can have it")


def may_drop(gone: Set[str], jobs: Mapping[JobId, Job]) -> None:
    """Raise Stale for a partition that has jobs: Slurm forgets them silently, even running ones."""
    for job in jobs.values():
        if not job.is_over and (left := gone & set(job.partition.split(","))):
            raise Stale(f"partition {min(left)} still has job {job.shown_id}: it stays")


def job_argument(job: Job) -> str:
    """Return the id by which Slurm takes exactly this job.

    The last task of an array has the array's own id, and Slurm takes that id for all tasks: tasks are named by array
    and index. Raise Permanent for the record of an array's pending rest, which is many jobs.
    """
    if job.array_job_id is None:
        return str(job.id)
    if job.array_task is None:
        raise Permanent(f"job {job.shown_id} stands for several pending tasks of an array: not one job")
    return f"{job.array_job_id}_{job.array_task}"


def require_job(jobs: Mapping[JobId, Job], job: JobId) -> Job:
    """Return the job. Raise Stale if Slurm does not hold it any more."""
    if job not in jobs:
        raise Stale(f"job {job} is not in Slurm any more")
    return jobs[job]


def _owner(node: Node) -> str:
    """Return the author of the node's reason, with the reason."""
    if node.reason is None:
        return f"an unknown person, without a reason (state {_state(node)})"
    return f"{show(node.reason.user) or 'an unknown person'} ('{show(node.reason.text)}')"


def _state(node: Node) -> str:
    """Return the node's state in Slurm's words."""
    return "+".join([node.base.value, *sorted(node.flags)])
