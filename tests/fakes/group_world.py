"""The cluster in memory with what groups need: dynamic nodes, partitions, setups, backups, a provider with limits."""

from dataclasses import dataclass, field, replace

from steward.model.action import (
    BackUpNode,
    DownNode,
    DrainNode,
    ForgetNode,
    LaunchInstance,
    ReturnNode,
    SetGate,
    SignalJob,
)
from steward.model.agent_action import Action, SetUpNode
from steward.model.ids import JobId, NodeName
from steward.model.node import Node, NodeBase
from steward.model.observed import Observed
from steward.model.partition import Partition, PartitionState
from steward.model.setup import SetupReport, SetupState
from tests.fakes.machine import Machine
from tests.fakes.world import World

SETUP_S = 2.0


@dataclass(slots=True)
class GroupWorld(World):
    """`bad_scripts` are nodes whose next setups fail, as often as the number says. Partitions are named like groups."""

    bad_scripts: dict[NodeName, int] = field(default_factory=dict)
    bad_backups: set[NodeName] = field(default_factory=set)
    features: dict[NodeName, frozenset[str]] = field(default_factory=dict)
    """Of dynamic nodes: what their slurmd will say. A login machine is no node."""
    backed_up: list[tuple[NodeName, bool]] = field(default_factory=list)
    signals: list[tuple[JobId, str]] = field(default_factory=list)
    setups: dict[str, int] = field(default_factory=dict)
    """Setups begun per token."""
    setting_up: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def with_partitions(*names: str) -> "GroupWorld":
        world = GroupWorld()
        for name in names:
            world.slurm.partitions[name] = Partition(name=name, state=PartitionState.UP)
        return world

    def known(self) -> set[NodeName]:
        return (
            set(self.slurm.nodes)
            | {machine.node for machine in self.machines.alive.values()}
            | set(self.machines.known())
        )

    def _tick(self) -> None:
        for machine in list(self.machines.alive.values()):
            self._register(machine)
            self._go_on_with_setup(machine)
        World._tick(self)

    def _register(self, machine: Machine) -> None:
        features = self.features.get(machine.node)
        if (
            features is None
            or machine.node in self.slurm.nodes
            or not machine.slurmd_speaks(self.now)
            or self.slurm_away
        ):
            return
        self.slurm.nodes[machine.node] = Node(
            name=machine.node,
            base=NodeBase.IDLE,
            flags=frozenset({"DRAIN", "DYNAMIC_NORM"}),
            features=features,
            partitions=features & self.slurm.partitions.keys(),
            slurmd_started=machine.started,
        )

    def _go_on_with_setup(self, machine: Machine) -> None:
        report = machine.setup
        if report is None or report.state is not SetupState.RUNNING or self.now < self.setting_up[report.token]:
            return
        left = self.bad_scripts.get(machine.node, 0)
        if left:
            self.bad_scripts[machine.node] = left - 1
            machine.setup = replace(report, state=SetupState.FAILED, step="on_create.sh", exit_status=3, why="failed")
        else:
            machine.setup = replace(report, state=SetupState.SUCCEEDED)

    def seen(self) -> Observed:
        return replace(World.seen(self), partitions=self.partitions(), partitions_at=self.now)

    def partitions(self) -> dict[str, Partition]:
        return {name: self._shown(partition) for name, partition in self.slurm.partitions.items()}

    def _shown(self, partition: Partition) -> Partition:
        nodes = frozenset(node.name for node in self.slurm.nodes.values() if partition.name in node.partitions)
        return replace(partition, nodes=nodes)

    def apply(self, action: Action) -> str:
        if self.is_deaf_to(action):
            return "slurmctld does not answer"
        match action:
            case LaunchInstance():
                if action.slot.role != "Login" and action.slot.node not in self.slurm.nodes:
                    self.features[action.slot.node] = action.slot.features
            case SetUpNode():
                return self._set_up(action)
            case SetGate():
                state = PartitionState.UP if action.open else PartitionState.DOWN
                self.slurm.partitions[action.partition] = replace(self.slurm.partitions[action.partition], state=state)
                return ""
            case ForgetNode():
                return self._forget(action.node)
            case SignalJob():
                self.signals.append((action.job, action.signal))
                return ""
            case BackUpNode():
                return self._back_up(action)
            case DrainNode() | DownNode() | ReturnNode() if action.node not in self.slurm.nodes:
                return "it is not in Slurm any more"
        return World.apply(self, action)

    def _set_up(self, action: SetUpNode) -> str:
        machine = self.machines.of(action.node)
        if machine is None or not machine.agent_speaks(self.now):
            return "its agent is not connected"
        if machine.setup is None or machine.setup.token != action.token:
            self.setups[action.token] = self.setups.get(action.token, 0) + 1
            self.setting_up[action.token] = self.now + SETUP_S
            machine.setup = SetupReport(token=action.token, state=SetupState.RUNNING, at=self.now)
        return ""

    def _forget(self, name: NodeName) -> str:
        if name not in self.features:
            return ""
        if any(name in job.nodes and job.is_active for job in self.slurm.jobs.values()):
            return "jobs are on it"
        self.slurm.nodes.pop(name, None)
        return ""

    def _back_up(self, action: BackUpNode) -> str:
        if action.node in self.bad_backups:
            return "backup: disk full"
        self.backed_up.append((action.node, action.restore))
        return ""
