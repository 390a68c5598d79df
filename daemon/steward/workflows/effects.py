"""The effect of each type of action, in one row: `apply` makes the calls, `journal` reads which records are affected.

A new action is a class in `model/action.py` or `agent_action.py`, a method of a port, and a row here; a test asks for
the row.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, TypeVar

from steward.model.action import (
    AllowRequeue,
    AnswerAsk,
    BackUpNode,
    CancelJob,
    CancelReplica,
    CheckNow,
    CommentJob,
    DelayTasks,
    DownNode,
    DrainNode,
    DropQos,
    DropTeam,
    ExtendLimit,
    ForgetNode,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    LookAtAlarms,
    MarkJob,
    MoveJob,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    ReleaseNodes,
    RequeueJob,
    ReserveNodes,
    ReturnNode,
    SetFeature,
    SetGate,
    SetNice,
    SetNodeCount,
    SetQos,
    SetTeam,
    SignalJob,
    SubmitDeep,
    TerminateInstance,
    WritePartitions,
)
from steward.model.agent_action import (
    Action,
    AgentAction,
    AgentsAction,
    CollectStacks,
    LetGo,
    MendNode,
    ResizeRun,
    SetUpNode,
    SubmitReplica,
)
from steward.model.ids import JobId, NodeName
from steward.model.mark import Mark
from steward.model.observed import Observed, Subject
from steward.ports import AccountingPort, AgentPort, Permanent, ProviderPort, SitePort, SlurmPort, Stale, WitnessPort

T = TypeVar("T")
Batch = tuple[Action, ...]
"""The actions of one call: one, or several drains, downs, returns with one mark, deletions, looks or nudges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports to which actions go.

    `provider` is None if no group of the settings has one, `accounting` is None if this Slurm has none.
    """

    slurm: SlurmPort
    provider: ProviderPort | None
    agents: AgentPort
    witness: WitnessPort
    site: SitePort
    accounting: AccountingPort | None = None

    @property
    def accounts(self) -> AccountingPort:
        """Return the accounting port. Raises Permanent if there is none."""
        if self.accounting is None:
            raise Permanent("Slurm's accounting is not used here: no quota can be kept")
        return self.accounting

    @property
    def machines(self) -> ProviderPort:
        """Return the provider port. Raises Permanent if there is none."""
        if self.provider is None:
            raise Permanent("no provider is configured for this node's group")
        return self.provider


class Door(Enum):
    """The way an action goes.

    Once a command of Slurm or of its database hangs, no other action goes the same way in this plan.
    """

    SLURM = "slurm"
    ACCOUNTING = "accounting"
    AGENTS = "agents"
    RUN = "run"
    """The coordinator of an elastic run, reached through its agent; what it changes shows in Slurm."""
    MACHINES = "machines"


class Lane(Enum):
    """The threads that carry out slow actions beside the cycle.

    Each lane has its own threads, so that a hanging action blocks no other lane, least of all the look at a node that
    may be dead.
    """

    COMMENTS = "comments"
    LIMITS = "limits"
    LOOKS = "looks"
    MACHINES = "machines"
    BACKUPS = "backups"


class Breaks(Enum):
    """The promise to a shim that is broken if the action fails."""

    NOTHING = "nothing"
    JOB = "job"
    """The promise that this job comes back."""
    NODE = "node"
    """The promise that the next attempt leaves this node out."""


class Affected:
    """The records of one picture that an action about a job, a node or a reservation affects."""

    def __init__(self, seen: Observed) -> None:
        self.seen = seen

    def job(self, id: JobId) -> Subject:
        """Return the job with its nodes."""
        job = self.seen.jobs.get(id)
        return Subject(nodes=job.nodes if job is not None else frozenset(), jobs=frozenset({id}))

    def down(self, node: NodeName) -> Subject:
        """Return the node, with the active jobs that lose it."""
        return Subject(nodes=frozenset({node}), jobs=frozenset(self._on.get(node, ())))

    def reserved(self, name: str) -> Subject:
        """Return the nodes of a reservation; empty if there is none of that name."""
        there = self.seen.reservations.get(name)
        return Subject(nodes=there.nodes if there is not None else frozenset())

    @cached_property
    def _on(self) -> Mapping[NodeName, list[JobId]]:
        """Return the active jobs of each node."""
        found: defaultdict[NodeName, list[JobId]] = defaultdict(list)
        for job in self.seen.jobs.values():
            for node in job.nodes if job.is_active else ():
                found[node].append(job.id)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A batch of actions for one call, and the picture on which they were planned."""

    batch: Batch
    seen: Observed

    @property
    def nodes(self) -> list[NodeName]:
        """Return the nodes that the actions of the batch are about."""
        return [node for action in self.batch for node in row_of(action).nodes(action) or ()]

    @property
    def marks(self) -> dict[NodeName, Mark]:
        """Return the mark for each node that the batch drains or sets DOWN."""
        return {action.node: action.mark for action in self.batch if isinstance(action, DrainNode | DownNode)}

    def of(self, kind: type[T]) -> list[T]:
        """Return the actions of this type in the batch."""
        return [action for action in self.batch if isinstance(action, kind)]


OfAction = Callable[[Any], frozenset[NodeName] | None]
Reads = Callable[[Any, Affected], Subject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The effect of one type of action.

    - `do(ports, action, call)` makes the call and raises what the port raises; `action` is the first of the batch
    - `nodes`: the nodes that the action is about. Order is kept for each node; None: no later action may overtake it
    - `groups_by`: actions of one type with equal values share a call
    - `lane`: the action may be slow; it is done there, beside the cycle, and its outcome rings the bell
    - `reads`: the records that must still be as the plan saw them
    - `touches`: the records that change, if not those of `reads`; it returns None if that is unknown
    - `about`: the fields of a log line, besides those that most actions have
    """

    do: Callable[[Ports, Any, Call], object]
    door: Door
    nodes: OfAction
    reads: Reads
    touches: Callable[[Any, Affected], Subject | None] | None = None
    groups_by: Callable[[Any], Hashable] | None = None
    lane: Lane | None = None
    breaks: Breaks = Breaks.NOTHING
    about: Callable[[Any], Mapping[str, Any]] | None = None

    def touched(self, action: Action, affected: Affected) -> Subject | None:
        """Return the records that the action changes; None if that is unknown."""
        return (self.touches or self.reads)(action, affected)

    @property
    def shows_in_slurm(self) -> bool:
        """Return whether the action changes Slurm's records, so that earlier reads of them are old."""
        return self.door in (Door.SLURM, Door.ACCOUNTING, Door.RUN)


def _barrier(action: Any) -> None:
    return None


def _no_node(action: Any) -> frozenset[NodeName]:
    return frozenset()


def _one_node(action: Any) -> frozenset[NodeName]:
    return frozenset({action.node})


def _its_nodes(action: Any) -> frozenset[NodeName]:
    return frozenset(action.nodes)


def _nothing(action: Any, affected: Affected) -> Subject:
    return Subject()


def _node(action: Any, affected: Affected) -> Subject:
    return Subject(nodes=frozenset({action.node}))


def _nodes(action: Any, affected: Affected) -> Subject:
    return Subject(nodes=frozenset(action.nodes))


def _job(action: Any, affected: Affected) -> Subject:
    """Return the job with its nodes."""
    return affected.job(action.job)


def _record(action: Any, affected: Affected) -> Subject:
    """Return the job without its nodes."""
    return Subject(jobs=frozenset({action.job}))


def _run(action: Any, affected: Affected) -> Subject:
    return Subject(jobs=frozenset({action.run}))


def _asked(action: AnswerAsk, affected: Affected) -> Subject:
    return affected.job(action.job) | Subject(nodes=action.exclude & affected.seen.nodes.keys())


def _let_go(action: LetGo, affected: Affected) -> Subject:
    return Subject(nodes=action.nodes, jobs=frozenset({action.job}))


def _reserved(action: Any, affected: Affected) -> Subject:
    return affected.reserved(action.name)


def _reserved_and_kept(action: KeepNodes, affected: Affected) -> Subject:
    return affected.reserved(action.name) | Subject(nodes=action.nodes)


def _case(action: Any) -> Mapping[str, Any]:
    return {"case": action.mark.id}


def _count(action: Any) -> Mapping[str, Any]:
    return {"nodes": len(action.nodes)}


def _reservation(action: Any) -> Mapping[str, Any]:
    nodes = {"nodes": len(action.nodes)} if hasattr(action, "nodes") else {}
    return {"reservation": action.name, **nodes}


def _order(to: Ports, action: AgentAction | AgentsAction, call: Call) -> None:
    to.agents.order(action)


def _look_at(to: Ports, action: ProbeNode, call: Call) -> None:
    """Have other nodes' agents and the head look at slurmd on the nodes."""
    addresses = {name: call.seen.nodes[name].slurmd for name in call.nodes if name in call.seen.nodes}
    if not addresses:
        raise Stale(f"{action.node} is not a node of Slurm any more")
    for one in call.of(ProbeNode):
        if one.peers and one.node in addresses:
            to.agents.have_looked_at(one.node, addresses[one.node], one.peers)
    to.witness.look_at_all(addresses, to.agents.keep_witness)


def _look_at_alarms(to: Ports, action: LookAtAlarms, call: Call) -> None:
    if firing := to.site.firing(action.alarms):
        raise Permanent(f"firing: {', '.join(firing)}")


Do = Callable[[Ports, Any, Call], object]


def _on_node(do: Do, *, reads: Reads = _node, **more: Any) -> Row:
    return Row(do=do, door=Door.SLURM, nodes=_one_node, reads=reads, **more)


def _on_job(do: Do, *, reads: Reads = _job, nodes: OfAction = _barrier, **more: Any) -> Row:
    return Row(do=do, door=Door.SLURM, nodes=nodes, reads=reads, **more)


def _of_team(do: Do) -> Row:
    return Row(do=do, door=Door.ACCOUNTING, nodes=_barrier, reads=_nothing)


def _of_run(do: Do) -> Row:
    return Row(do=do, door=Door.RUN, nodes=_barrier, reads=_run)


def _by_agent(do: Do, *, nodes: OfAction = _one_node, reads: Reads = _node, **more: Any) -> Row:
    return Row(do=do, door=Door.AGENTS, nodes=nodes, reads=reads, **more)


def _of_machine(
    do: Do, *, nodes: OfAction = _one_node, reads: Reads = _node, lane: Lane = Lane.MACHINES, **more: Any
) -> Row:
    return Row(do=do, door=Door.MACHINES, nodes=nodes, reads=reads, lane=lane, **more)


def _in_slurm(do: Do, *, nodes: OfAction = _barrier, reads: Reads = _nothing, **more: Any) -> Row:
    return Row(do=do, door=Door.SLURM, nodes=nodes, reads=reads, **more)


EFFECTS: Mapping[type[Action], Row] = {
    DrainNode: _on_node(
        lambda to, a, call: to.slurm.drain(call.marks, [one.node for one in call.of(DrainNode) if one.was_marked]),
        groups_by=lambda a: (),
        breaks=Breaks.NODE,
        about=_case,
    ),
    DownNode: _on_node(
        lambda to, a, call: to.slurm.down(call.marks),
        reads=lambda a, affected: affected.down(a.node),
        groups_by=lambda a: (),
        breaks=Breaks.NODE,
        about=_case,
    ),
    ReturnNode: _on_node(
        lambda to, a, call: to.slurm.give_back(call.nodes, a.mark, a.command),
        groups_by=lambda a: (a.mark, a.command),
        about=_case,
    ),
    ForgetNode: _on_node(lambda to, a, call: to.slurm.forget_nodes(call.nodes), groups_by=lambda a: ()),
    SetFeature: _in_slurm(
        lambda to, a, call: to.slurm.set_feature(a.nodes, a.prefix, a.word),
        nodes=_its_nodes,
        touches=_nodes,
        about=_count,
    ),
    SetGate: _in_slurm(lambda to, a, call: to.slurm.set_gate(a.partition, open=a.open)),
    WritePartitions: _in_slurm(
        lambda to, a, call: to.slurm.write_partitions(a.text),
        touches=lambda a, affected: None,
        about=lambda a: {"bytes": len(a.text)},
    ),
    ReserveNodes: _in_slurm(
        lambda to, a, call: to.slurm.reserve(a.name, a.nodes, a.seconds),
        nodes=_its_nodes,
        reads=_nodes,
        about=_reservation,
    ),
    SubmitDeep: _in_slurm(
        lambda to, a, call: to.slurm.submit_deep(a.name, a.nodes, a.argv, seconds=a.seconds, output=a.output),
        nodes=_its_nodes,
        reads=_nodes,
        about=_reservation,
    ),
    ReleaseNodes: _in_slurm(lambda to, a, call: to.slurm.release(a.name), touches=_reserved, about=_reservation),
    KeepNodes: _in_slurm(
        lambda to, a, call: to.slurm.keep_nodes(a.name, a.nodes, a.seconds),
        nodes=_its_nodes,
        reads=_nodes,
        touches=_reserved_and_kept,
        about=_reservation,
    ),
    FreeNodes: _in_slurm(lambda to, a, call: to.slurm.free_nodes(a.name), touches=_reserved, about=_reservation),
    RequeueJob: _on_job(
        lambda to, a, call: to.slurm.requeue(a.job, a.exclude, restart=a.restart, told_at=a.told_at), breaks=Breaks.JOB
    ),
    NudgeJob: _on_job(
        lambda to, a, call: to.slurm.nudge(call.of(NudgeJob)), reads=_record, groups_by=lambda a: (), breaks=Breaks.JOB
    ),
    AllowRequeue: _on_job(lambda to, a, call: to.slurm.allow_requeue(a.job), reads=_record, breaks=Breaks.JOB),
    SignalJob: _on_job(lambda to, a, call: to.slurm.signal(a.job, a.signal), nodes=_no_node),
    CommentJob: _on_job(
        lambda to, a, call: to.slurm.comment(a.job, a.text), reads=_record, nodes=_no_node, lane=Lane.COMMENTS
    ),
    ExtendLimit: _on_job(lambda to, a, call: to.slurm.extend(a.job, a.limit_s), lane=Lane.LIMITS),
    DelayTasks: _on_job(lambda to, a, call: to.slurm.delay_tasks(a.array, a.delay_s), reads=_record),
    SetNice: _on_job(lambda to, a, call: to.slurm.set_nice(a.job, a.nice), reads=_record),
    MoveJob: _on_job(lambda to, a, call: to.accounts.move_job(a), reads=_record),
    MarkJob: _on_job(lambda to, a, call: to.accounts.mark_job(a), reads=_record),
    SetNodeCount: _on_job(lambda to, a, call: to.accounts.set_node_count(a), reads=_record),
    CancelJob: _on_job(lambda to, a, call: to.accounts.cancel_job(a)),
    CancelReplica: _on_job(lambda to, a, call: to.slurm.cancel_replica(a.job, a.run)),
    SetQos: _of_team(lambda to, a, call: to.accounts.set_qos(a)),
    DropQos: _of_team(lambda to, a, call: to.accounts.drop_qos(a)),
    SetTeam: _of_team(lambda to, a, call: to.accounts.set_team(a)),
    DropTeam: _of_team(lambda to, a, call: to.accounts.remove_account(a.account)),
    ResizeRun: _of_run(_order),
    SubmitReplica: _of_run(_order),
    AnswerAsk: _by_agent(
        lambda to, a, call: to.agents.answer(a.ask, a.answer, a.exclude),
        nodes=_barrier,
        reads=_asked,
        about=lambda a: {"answer": a.answer.value},
    ),
    LetGo: _by_agent(_order, nodes=_barrier, reads=_let_go, about=_count),
    CheckNow: _by_agent(
        lambda to, a, call: to.agents.check_now(a.nodes, a.budget_s), nodes=_its_nodes, reads=_nothing, about=_count
    ),
    CollectStacks: _by_agent(_order, nodes=_no_node, reads=_job, about=_count),
    MendNode: _by_agent(_order),
    SetUpNode: _by_agent(_order),
    ProbeNode: _by_agent(_look_at, reads=_nothing, groups_by=lambda a: (), lane=Lane.LOOKS),
    LaunchInstance: _of_machine(
        lambda to, a, call: to.machines.launch(a.slot, a.token),
        nodes=lambda a: frozenset({a.slot.node}),
        reads=lambda a, affected: Subject(nodes=frozenset({a.slot.node})),
        about=lambda a: {"node": a.slot.node, "case": a.case},
    ),
    TerminateInstance: _of_machine(lambda to, a, call: to.machines.terminate(a.instance)),
    RebootInstance: _of_machine(lambda to, a, call: to.machines.reboot(a.instance, a.token)),
    BackUpNode: _of_machine(
        lambda to, a, call: to.site.back_up(a.node, a.instance, restore=a.restore), lane=Lane.BACKUPS
    ),
    LookAtAlarms: _of_machine(
        _look_at_alarms, nodes=_no_node, reads=_nothing, about=lambda a: {"alarms": len(a.alarms)}
    ),
}
"""Comments and limits have lanes of their own, because Slurm delays some changes of a running job by 5 s.

It does so while the job's record is not in its database yet.
"""


def row_of(action: Action) -> Row:
    """Return the effect of the action."""
    return EFFECTS[type(action)]


def take_effect(to: Ports, batch: Batch, seen: Observed) -> None:
    """Make the call of a batch. Raises what the port raises."""
    row_of(batch[0]).do(to, batch[0], Call(batch=batch, seen=seen))
