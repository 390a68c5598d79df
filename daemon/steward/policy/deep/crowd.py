"""Who else could use the nodes of deep checks: idle nodes, users' waiting jobs, other reservations."""

from collections.abc import Sequence
from functools import cached_property

from steward.model.deep import DeepCause, DeepRun
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.reservation import Reservation
from steward.policy.draft import Draft

STARTS_BY_ITSELF_S = 5.0
"""A job for which enough other nodes are idle has started by then, or cannot use them."""


class Crowd:
    """The nodes and jobs around deep checks in one picture, as they are when they are first asked for."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._free_for: dict[JobId, frozenset[NodeName]] = {}

    @cached_property
    def idle(self) -> frozenset[NodeName]:
        """Nodes on which Slurm would start a job now, those of deep checks left out."""
        return self._draft.overview.idle.difference(self._draft.deeps.holding, self.foreign)

    @cached_property
    def held(self) -> frozenset[NodeName]:
        """Nodes in service that deep checks have or asked for."""
        holding = self._draft.deeps.holding.items()
        return frozenset(
            node for node, runs in holding if any(r.cause is not DeepCause.ON_START for r in runs.values())
        )

    @property
    def jobs(self) -> Sequence[Job]:
        """Users' jobs that would start if nodes were free."""
        return self._draft.overview.waiting

    @cached_property
    def foreign(self) -> frozenset[NodeName]:
        """Nodes in reservations of others, from now to the end of a deep check that would begin now."""
        draft = self._draft
        until = draft.now + draft.want.deep.budget_s + draft.want.deep.start_timeout_s
        found = [r for r in draft.seen.reservations.values() if not r.is_ours and r.starts <= until]
        others = [r for r in found if draft.now < r.ends]
        return frozenset(node for each in others for node in each.nodes if not _is_repaired_for(each, node, draft))

    def needed(self, node: Node) -> Job | None:
        """A user's waiting job that could use this node and would not start on others at once."""
        return next((job for job in self.jobs if self._needs(job, node)), None)

    def _needs(self, job: Job, node: Node) -> bool:
        if node.name not in self._draft.overview.nodes_of(job.partition) or node.name in job.excluded:
            return False
        since = job.eligible or job.submitted or 0.0
        self._draft.wake(since + STARTS_BY_ITSELF_S)
        if self._draft.now >= since + STARTS_BY_ITSELF_S:
            return True
        free = self._free(job)
        return len(free) - (node.name in free) < max(1, job.node_count)

    def _free(self, job: Job) -> frozenset[NodeName]:
        if job.id not in self._free_for:
            self._free_for[job.id] = (self.idle & self._draft.overview.nodes_of(job.partition)) - job.excluded
        return self._free_for[job.id]

    def room(self) -> int:
        """How many more nodes in service may be taken for deep checks; one that is idle stays while jobs wait."""
        rules, free = self._draft.want.deep, len(self.idle)
        most = max(rules.at_once_min, int(rules.at_once_fraction * (free + len(self.held))))
        return max(0, min(most - len(self.held), free - 1 if self.jobs else free))


def _is_repaired_for(reservation: Reservation, node: NodeName, draft: Draft) -> bool:
    """We keep the node for a job, and it must prove itself before it is back."""
    return reservation.kept_for is not None and draft.cases.open_of(node) is not None


def is_in_other_run(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    return any(id != run.id for id in draft.deeps.holding.get(node, ()))
