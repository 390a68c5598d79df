"""Who else could use the nodes of deep checks: idle nodes, users' waiting jobs, other reservations."""

from collections.abc import Iterable
from dataclasses import dataclass

from steward.model.deep import DeepCause, DeepRun
from steward.model.deep_command import PREFIX
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.node import Node, NodeBase
from steward.model.reservation import Reservation
from steward.policy.draft import Draft

_WAITS_FOR_NODES = ("None", "Resources", "Priority", "ReqNodeNotAvail", "Reservation")
"""Slurm's reasons of jobs that would start if nodes were free; others wait for a time, a person, a limit or a job."""
STARTS_BY_ITSELF_S = 5.0
"""A job for which enough other nodes are idle has started by then, or cannot use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Of one picture. `idle` are nodes on which Slurm would start a job now, those of deep checks left out; `held`
    those that deep checks of nodes in service have or asked for."""

    idle: frozenset[NodeName]
    held: frozenset[NodeName]
    jobs: tuple[Job, ...]
    foreign: frozenset[NodeName]
    """Nodes in reservations of others, from now to the end of a deep check that would begin now."""

    def needed(self, node: Node, draft: Draft) -> Job | None:
        """A user's waiting job that could use this node and would not start on others at once."""
        return next((job for job in self.jobs if self._needs(job, node, draft)), None)

    def _needs(self, job: Job, node: Node, draft: Draft) -> bool:
        parts = set(job.partition.split(","))
        if not parts & node.partitions or node.name in job.excluded:
            return False
        others = [
            n for n in self.idle - {node.name} if parts & draft.seen.nodes[n].partitions and n not in job.excluded
        ]
        since = job.eligible or job.submitted or 0.0
        draft.wake(since + STARTS_BY_ITSELF_S)
        return len(others) < max(1, job.node_count) or draft.now >= since + STARTS_BY_ITSELF_S

    def room(self, draft: Draft) -> int:
        """How many more nodes in service may be taken for deep checks; one that is idle stays while jobs wait."""
        rules, free = draft.want.deep, len(self.idle)
        most = max(rules.at_once_min, int(rules.at_once_fraction * (free + len(self.held))))
        return max(0, min(most - len(self.held), free - 1 if self.jobs else free))


def crowd_of(draft: Draft) -> Crowd:
    runs = [run for run in draft.deeps.values() if run.has_nodes]
    taken = frozenset(node for run in runs for node in nodes_of(run))
    held = frozenset(node for run in runs if run.cause is not DeepCause.ON_START for node in nodes_of(run))
    idle = frozenset(name for name, node in draft.seen.nodes.items() if is_idle(node)) - taken
    until = draft.now + draft.want.deep.budget_s + draft.want.deep.start_timeout_s
    others = [r for r in draft.seen.reservations.values() if not r.is_ours and r.starts <= until and draft.now < r.ends]
    foreign = frozenset(node for each in others for node in each.nodes if not _is_repaired_for(each, node, draft))
    return Crowd(idle=idle - foreign, held=held, jobs=tuple(waiting_jobs(draft)), foreign=foreign)


def _is_repaired_for(reservation: Reservation, node: NodeName, draft: Draft) -> bool:
    """We keep the node for a job, and it must prove itself before it is back."""
    return reservation.kept_for is not None and draft.open_case(node) is not None


def is_idle(node: Node) -> bool:
    """Slurm would start a job on it now."""
    return node.base is NodeBase.IDLE and node.is_schedulable and not node.is_busy and node.is_powered


def waiting_jobs(draft: Draft) -> Iterable[Job]:
    """Users' jobs that would start if nodes were free."""
    for job in draft.seen.jobs.values():
        is_ready = job.is_pending and not job.partition.startswith(PREFIX) and (job.eligible or 0.0) <= draft.now
        if is_ready and (not job.reason or job.reason.startswith(_WAITS_FOR_NODES)):
            yield job


def nodes_of(run: DeepRun) -> frozenset[NodeName]:
    """Those that it is not over for yet."""
    return run.nodes - run.results.keys()


def is_in_other_run(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    return any(other.has_nodes and other.id != run.id and node in nodes_of(other) for other in draft.deeps.values())
