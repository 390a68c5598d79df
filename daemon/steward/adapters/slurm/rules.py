"""Questions that both adapters ask before they write to Slurm: may we touch it, and how is the job named."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set

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


def may_take_out(nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName]) -> None:
    """Raises Stale, naming who and why, when somebody else took one of them out of service, or one is unknown."""
    for name in wanted:
        node = nodes.get(name)
        if node is None:
            raise Stale(f"node {name} is not in Slurm any more")
        if node.is_foreign:
            raise Stale(f"node {name} was taken out of service by {_owner(node)}: left alone")


def may_give_back(nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName], mark: Mark, command: str) -> None:
    """Raises Stale unless each of them is out of service with `mark`, or `command`, as its reason."""
    for name in wanted:
        _may_give_back(nodes.get(name), name, mark, command)


def _may_give_back(node: Node | None, name: NodeName, mark: Mark, command: str) -> None:
    if node is None:
        raise Stale(f"node {name} is not in Slurm any more")
    if node.reason is None:
        raise Stale(f"node {name} has no reason {command or mark} any more (its state: {_state(node)})")
    if first_token(node.reason.text) not in {str(mark), *([command] if command else [])}:
        raise Stale(f"node {name} was taken out of service by {_owner(node)}, not by {mark}: left alone")


def is_the_run(job: Job, restart: int | None) -> None:
    """Raises Stale when the job was restarted since it had the restart count `restart`; None: any run will do."""
    if restart is not None and job.restarts != restart:
        raise Stale(f"job {job.id} was restarted meanwhile (restart {job.restarts}, not {restart}): left alone")


def may_requeue(job: Job, parts: Iterable[Job] = (), *, told_at: float | None = None) -> None:
    """Raises Stale for a job that waits already, unless one of its other `parts` is left over, or that its user or its
    success ended: Slurm would run it again. Success after `told_at` is none: the job was told to make room. Raises
    Retryable while it cleans up and does not show what it will be (22.05): its user may have cancelled it."""
    if job.is_pending and not any(part.is_left_over for part in parts):
        raise Stale(f"job {job.id} is pending already ({show(job.reason)})")
    if job.state is JobState.CANCELLED or (job.state is JobState.COMPLETED and not job.made_room(told_at)):
        raise Stale(f"job {job.id} is {job.state.value}: left alone")
    if job.state is JobState.UNKNOWN:
        raise Retryable(f"job {job.id} still cleans up")


def to_nudge(known: Mapping[JobId, Job], nudges: Sequence[NudgeJob]) -> list[tuple[Job, NudgeJob]]:
    """Those that may be, with their jobs. Raises Stale or Retryable, as `may_nudge` does, for a single one."""
    waiting: list[tuple[Job, NudgeJob]] = []
    for one in nudges:
        try:
            job = found(known, one.job)
            is_the_run(job, one.restart)
            may_nudge(job, release=one.release)
        except (Stale, Retryable):
            if len(nudges) == 1:
                raise
        else:
            waiting.append((job, one))
    return waiting


def may_nudge(job: Job, *, release: bool) -> None:
    """Raises Stale unless the job is pending, or when a person holds it and we are to `release` it: only Slurm's
    holds are ours to lift. Raises Retryable while it still cleans up."""
    if job.is_completing:
        raise Retryable(f"job {job.id} still cleans up")
    if not job.is_pending:
        raise Stale(f"job {job.id} is {job.state.value}, not pending")
    if release and job.is_held and not job.is_held_by_slurm:
        raise Stale(f"job {job.id} is held ({show(job.reason)}): left alone")


def new_comment(job: Job, text: str) -> str:
    """The job's whole admin comment with `text` as our part. Raises Retryable while it cleans up, Permanent for a text
    that is not ours or not one short line."""
    if not text.startswith(comment.PREFIX) or text != printable(text, comment.LONGEST) or comment.BETWEEN in text:
        raise Permanent(f"not a comment of ours: {show(text)}")
    if job.is_completing:
        raise Retryable(f"job {job.id} still cleans up")
    return comment.with_ours(job.admin_comment, text)


def may_signal(job: Job) -> None:
    """Raises Stale unless the job runs."""
    if not job.is_active:
        raise Stale(f"job {job.id} is {job.state.value}, it does not run")


def may_cancel_replica(job: Job, run: JobId) -> None:
    """Raises Stale when it is over, Permanent when it is no replica of this run."""
    known = replica_of(job.comment)
    if known is None or known[0] != run:
        raise Permanent(f"job {job.id} is not a replica of the elastic run {run}: left alone")
    if not job.is_pending and not job.is_active:
        raise Stale(f"job {job.id} is {job.state.value}")


def may_set_nice(job: Job) -> None:
    """Raise Stale when the job is over, or held: Slurm (22.05) gives a held job a priority for a new nice value, and so
    starts it."""
    if not job.is_pending and not job.is_active:
        raise Stale(f"job {job.id} is {job.state.value}")
    if job.is_pending and not job.priority:
        raise Stale(f"job {job.id} is held")


def limit_minutes(job: Job, limit_s: float, longest: int | None) -> int | None:
    """The time limit to set; None: the job's is as long already. `longest` is the partition's, in minutes."""
    if job.time_limit_s is None:
        return None
    minutes = math.ceil(limit_s / 60.0)
    minutes = minutes if longest is None else min(minutes, longest)
    return minutes if minutes * 60.0 > job.time_limit_s else None


def may_forget(nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName]) -> tuple[list[NodeName], list[NodeName]]:
    """The nodes to delete, and those that jobs are on. Only nodes that registered themselves are among them: Slurm
    22.05 also deletes a node of slurm.conf, and crashes later because of that."""
    known = [nodes[name] for name in sorted(set(wanted)) if name in nodes and nodes[name].is_dynamic]
    return [node.name for node in known if not node.is_busy], [node.name for node in known if node.is_busy]


Features = tuple[frozenset[str], frozenset[str]]
"""Features of a node: available ones and active ones."""


def by_features(
    nodes: Mapping[NodeName, Node], wanted: Iterable[NodeName], prefix: str, word: str
) -> dict[Features, list[NodeName]]:
    """Return the nodes that do not have `prefix` + `word` as their only feature with that prefix (none where the word
    is empty), by the features that they are to have. Nodes that are gone are left out. Raises Permanent for text that
    would be more than one feature."""
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
    """Raises Permanent for a partition that the site's slurm.conf has already, Stale for a node that is gone: with
    either of them slurmctld would not start any more. `ours` are the partitions of our file as it was."""
    if theirs := sorted((lines.states.keys() & partitions.keys()) - ours):
        raise Permanent(
            f"partition {theirs[0]} is in the site's own slurm.conf: name it in capacity.owned_partitions, or take it "
            "out of slurm.conf"
        )
    if gone := sorted(lines.nodes - nodes.keys()):
        raise Stale(f"node {gone[0]} is not in Slurm any more: no partition can have it")


def may_drop(gone: Set[str], jobs: Mapping[JobId, Job]) -> None:
    """Raises Stale for a partition that has jobs: Slurm forgets them without a word, those that run too."""
    for job in jobs.values():
        if not job.is_over and (left := gone & set(job.partition.split(","))):
            raise Stale(f"partition {min(left)} still has job {job.id}: it stays")


def spelled(job: Job) -> str:
    """How Slurm must be told of exactly this job.

    The last task of an array carries the array's own id, and Slurm takes that id for all tasks: tasks are named by
    array and index. Raises Permanent for the record of an array's pending rest, which is many jobs.
    """
    if job.array_job_id is None:
        return str(job.id)
    if job.array_task is None:
        raise Permanent(f"job {job.id} stands for several pending tasks of an array: not one job")
    return f"{job.array_job_id}_{job.array_task}"


def found(jobs: Mapping[JobId, Job], job: JobId) -> Job:
    """Raises Stale when Slurm does not hold the job any more."""
    if job not in jobs:
        raise Stale(f"job {job} is not in Slurm any more")
    return jobs[job]


def _owner(node: Node) -> str:
    if node.reason is None:
        return f"somebody who left no reason (state {_state(node)})"
    return f"{show(node.reason.user) or 'somebody'} ({show(node.reason.text)!r})"


def _state(node: Node) -> str:
    return "+".join([node.base.value, *sorted(node.flags)])
