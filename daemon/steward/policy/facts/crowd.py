"""The nodes that a waiting deep check can take, beside users' waiting jobs, other deep checks and reservations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from steward.model.deep import DeepKind, DeepRun
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.reservation import Reservation
from steward.policy.draft import Draft

AT_ONCE_LEAST = 2  # a single node cannot measure the network
STARTS_BY_ITSELF_S = 5.0
"""A waiting job with enough idle nodes has started after this time, or cannot use those nodes."""


class Crowd:
    """The nodes and jobs of one picture that deep checks compete with; each answer is worked out once."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._free_for: dict[JobId, Sequence[frozenset[NodeName]]] = {}

    @cached_property
    def idle(self) -> frozenset[NodeName]:
        """Return the nodes on which Slurm would start a job now, without those of deep checks and `foreign` ones."""
        return self._draft.overview.idle.difference(self._draft.deeps.holding, self.foreign)

    @cached_property
    def held(self) -> frozenset[NodeName]:
        """Return the nodes that deep checks of nodes in service have or asked for."""
        holding = self._draft.deeps.holding.items()
        return frozenset(node for node, runs in holding if any(not r.is_for_return for r in runs.values()))

    @property
    def jobs(self) -> Sequence[Job]:
        """Return the users' jobs that would start if nodes were free."""
        return self._draft.overview.waiting

    @cached_property
    def foreign(self) -> frozenset[NodeName]:
        """Return the nodes in reservations of others that overlap a deep check begun now."""
        draft = self._draft
        until = draft.now + draft.want.deep.budget_s + draft.want.deep.start_timeout_s
        found = [r for r in draft.seen.reservations.values() if not r.is_ours and r.starts <= until]
        others = [r for r in found if draft.now < r.ends]
        return frozenset(node for each in others for node in each.nodes if not _is_repaired_for(each, node, draft))

    def needed(self, node: Node) -> Job | None:
        """Return a user's waiting job that could use this node and would not start on others at once; None if none."""
        return next((job for job in self.jobs if self._needs(job, node)), None)

    def _needs(self, job: Job, node: Node) -> bool:
        if node.name not in self._draft.overview.nodes_of(job.partition) or node.name in job.excluded:
            return False
        since = job.eligible or job.submitted or 0.0
        self._draft.wake(since + STARTS_BY_ITSELF_S)
        if self._draft.now >= since + STARTS_BY_ITSELF_S:
            return True
        return all(len(free) - (node.name in free) < max(1, job.node_count) for free in self._usable_idle(job))

    def _usable_idle(self, job: Job) -> Sequence[frozenset[NodeName]]:
        """Return the idle nodes that the job could use, for each partition in which it may run."""
        if job.id not in self._free_for:
            parts = map(self._draft.overview.nodes_of, job.partitions)
            self._free_for[job.id] = [(self.idle & nodes) - job.excluded for nodes in parts]
        return self._free_for[job.id]

    def room(self) -> int:
        """Return how many more nodes in service deep checks may take; one idle node stays while jobs wait."""
        rules, free = self._draft.want.deep, len(self.idle)
        most = max(AT_ONCE_LEAST, int(rules.at_once_fraction * (free + len(self.held))))
        return max(0, min(most - len(self.held), free - 1 if self.jobs else free))


def _is_repaired_for(reservation: Reservation, node: NodeName, draft: Draft) -> bool:
    """Return whether the reservation keeps the node for a job while the node is under repair."""
    # such a node must pass its deep check inside the reservation before it serves again
    return reservation.kept_for is not None and draft.cases.open_of(node) is not None


def is_in_other_run(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    return any(id != run.id for id in draft.deeps.holding.get(node, ()))


# The nodes of one check.


@dataclass(frozen=True, slots=True, kw_only=True)
class Hurdle:
    """The reason why a node cannot be reserved for a deep check; `is_final`: waiting does not help."""

    text: str
    is_final: bool = False


def hurdle(name: NodeName, run: DeepRun, crowd: Crowd, draft: Draft) -> Hurdle | None:
    """Return why the node cannot be reserved for the deep check; None if it can be reserved now."""
    node, view = draft.seen.nodes.get(name), draft.seen.agents.get(name)
    if node is None:
        return Hurdle(text="Slurm does not know the node", is_final=True)
    if view is None or not view.connected:
        return Hurdle(text="the node's agent is not connected")
    if is_in_other_run(name, run, draft):
        return Hurdle(text="another deep check has the node")
    if run.is_for_return:
        return Hurdle(text="jobs run on the node") if node.is_busy else None
    return _hurdle_in_service(node, crowd, draft)


def _hurdle_in_service(node: Node, crowd: Crowd, draft: Draft) -> Hurdle | None:
    record = draft.slots.get(node.name)
    if draft.cases.open_of(node.name) is not None:
        return Hurdle(text="the node is under repair", is_final=True)
    if record is not None and record.is_leaving:
        return Hurdle(text="the node leaves its group", is_final=True)
    if node.is_drain or node.is_down:
        return Hurdle(text="the node is out of service", is_final=True)
    if node.name in crowd.foreign:
        return Hurdle(text="the node is in a reservation that is not Steward's")
    if node.is_busy:
        return Hurdle(text="jobs run on the node")
    if (job := crowd.needed(node)) is not None:
        return Hurdle(text=f"job {job.shown_id} is waiting and could use the node")
    return None if node.name in crowd.idle else Hurdle(text="the node is not idle")


def free_nodes(run: DeepRun, crowd: Crowd, draft: Draft) -> list[NodeName]:
    """Return the nodes of the deep check that it could take now, in order."""
    left = sorted(run.nodes - run.results.keys(), key=lambda name: (len(name), name))
    return [name for name in left if hurdle(name, run, crowd, draft) is None]


def nodes_to_take(run: DeepRun, crowd: Crowd, draft: Draft) -> frozenset[NodeName]:
    """Return the free nodes that the deep check takes now, as many as allowed; empty while it waits for more."""
    free = free_nodes(run, crowd, draft)
    if not free:
        return frozenset()
    gathered = (draft.now if run.free is None else run.free) + draft.want.deep.gather_s
    # the first free node waits a little for the others: the nodes of a job that has just ended clean up one by one
    if len(free) < len(run.nodes - run.results.keys()) and draft.now < gathered:
        draft.wake(gathered)
        return frozenset()
    room = len(free) if run.is_for_return else crowd.room()
    taken = free[:room]
    alone = len(taken) == 1 and run.kinds == {DeepKind.CONNECTIVITY}
    return frozenset() if alone else frozenset(taken)


def nodes_to_give_up(run: DeepRun, crowd: Crowd, draft: Draft) -> dict[NodeName, str]:
    """Return node -> why the waiting deep check gives it up: the time is up, or waiting does not help."""
    until = run.asked + draft.want.deep.busy_wait_s
    draft.wake(until)
    draft.wake(run.asked + draft.want.deep.gather_s)
    is_over = draft.now >= until and not run.is_for_return
    left = run.nodes - run.results.keys()
    if run.kinds == {DeepKind.CONNECTIVITY} and len(left) == 1 and draft.now >= run.asked + draft.want.deep.gather_s:
        return dict.fromkeys(left, "there is no second node to measure with")
    has_no_turn = is_over and not nodes_to_take(run, crowd, draft)
    found = {}
    for name in left:
        why = hurdle(name, run, crowd, draft)
        if why is not None and (why.is_final or is_over):
            found[name] = why.text
        elif why is None and has_no_turn:
            found[name] = "the deep check got no turn within busy_wait_s"
    return found
