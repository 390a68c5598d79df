"""The simulated machines and their agents: they die, fall silent, are reset, rebooted, replaced and repaired."""

from dataclasses import dataclass, replace

from steward.model.health import Finding, Incarnation, Outcome
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.job_report import Progress
from steward.model.mend import MendReport
from steward.model.observed import AgentView
from steward.model.witness import Witness, WitnessSeen
from steward.simulate.faults import FaultEvent, FaultSign
from steward.simulate.table import ShownTable


@dataclass(slots=True, kw_only=True)
class Machine:
    """The machine behind one node. `fault` is what it has now."""

    node: NodeName
    instance: InstanceId
    boot: int = 1
    is_up: bool = True
    fault: FaultEvent | None = None
    since: float = 0.0

    @property
    def incarnation(self) -> Incarnation:
        """Return the machine and its boot, as its agent reports them."""
        return Incarnation(instance=self.instance, boot=BootId(f"{self.instance}-{self.boot}"))

    @property
    def is_sound(self) -> bool:
        """Return whether jobs can run on it."""
        return self.is_up and self.fault is None


class Machines:
    """All machines, what the head hears of their agents, and the provider's list."""

    def __init__(self) -> None:
        self.of: dict[NodeName, Machine] = {}
        self.views: ShownTable[NodeName, AgentView] = ShownTable()
        self.instances: ShownTable[InstanceId, Instance] = ShownTable()
        self._made = 0

    def add(self, node: NodeName, now: float, token: str = "") -> Machine:
        """Make a machine for a node; it is not up yet."""
        self._made += 1
        machine = Machine(node=node, instance=InstanceId(f"i-{self._made}"), is_up=False, since=now)
        self.of[node] = machine
        self._list(machine, InstanceState.PENDING, now, token)
        return machine

    def _list(self, machine: Machine, state: InstanceState, launched: float, token: str) -> None:
        made = Instance(id=machine.instance, node=machine.node, state=state, token=token, launched=launched)
        self.instances.put(machine.instance, made)

    def come_up(self, machine: Machine, now: float) -> None:
        """Let a machine's agent connect."""
        machine.is_up, machine.since = True, now
        listed = self.instances[machine.instance]
        if listed.state is not InstanceState.RUNNING:
            self.instances.put(machine.instance, replace(listed, state=InstanceState.RUNNING))
        view = AgentView(
            node=machine.node,
            incarnation=machine.incarnation,
            connected=True,
            last_heard=now,
            reported_at=now,
            findings=_findings(machine, now),
        )
        self.views.put(machine.node, view)

    def report(self, machine: Machine, now: float) -> None:
        """Let the agent report what its machine has."""
        view = self.views[machine.node]
        if machine.is_up and view.connected:
            findings = view.findings if _tells(view, machine) else _findings(machine, now)
            self.views.put(machine.node, replace(view, findings=findings, reported_at=now, last_heard=now))

    def tell(self, node: NodeName, progress: tuple[Progress, ...]) -> None:
        """Let a node's agent tell of its jobs; nothing of a machine that is not heard."""
        view = self.views[node]
        if view.connected and view.progress != progress:
            self.views.put(node, replace(view, progress=progress))

    def fall_silent(self, machine: Machine, now: float) -> None:
        """Let the head find an agent silent, and its slurmd's port, too."""
        view = self.views[machine.node]
        if not machine.is_up and view.connected:
            lost = WitnessSeen(result=Witness.SILENT, at=now)
            gone = replace(
                view, connected=False, lost_at=now, lost_why="silent", fell_silent=True, witness=lost, peers=()
            )
            self.views.put(machine.node, gone)

    def hang_up(self, machine: Machine, now: float) -> None:
        """Let a machine go down in good order: its agent's connection ends."""
        machine.is_up = False
        view = self.views.get(machine.node)
        if view is not None and view.connected:
            gone = replace(view, connected=False, lost_at=now, lost_why="connection reset", host_ends=True)
            self.views.put(machine.node, gone)

    def looked_at(self, node: NodeName, now: float) -> None:
        """Take the second witness's look at a node."""
        view, machine = self.views.get(node), self.of[node]
        if view is not None and not view.connected:
            result = Witness.ALIVE if machine.is_up else Witness.SILENT
            self.views.put(node, replace(view, witness=WitnessSeen(result=result, at=now)))

    def checked(self, node: NodeName, asked_at: float, now: float) -> None:
        """Let the agent answer a request for checks."""
        machine = self.of[node]
        if machine.is_up and self.views[node].connected:
            self.report(machine, now)
            self.views.put(node, replace(self.views[node], checked_at=asked_at))

    def mended(self, node: NodeName, token: str, now: float) -> None:
        """Let the agent report a light repair; a reset cures some faults."""
        machine = self.of[node]
        if not machine.is_up or not self.views[node].connected:
            return
        if machine.fault is not None and machine.fault.reset_cures:
            machine.fault = None
        self.report(machine, now)
        self.views.put(node, replace(self.views[node], mend=MendReport(token=token, error="", at=now)))

    def end(self, instance: InstanceId, now: float) -> NodeName | None:
        """End a machine; return its node."""
        listed = self.instances.get(instance)
        if listed is None:
            return None
        self.instances.drop(instance)
        machine = self.of.get(listed.node)
        if machine is not None and machine.instance == instance:
            self.hang_up(machine, now)
        return listed.node


def _tells(view: AgentView, machine: Machine) -> bool:
    """Return whether the view has the finding of what the machine has."""
    has = machine.fault.kind.check if machine.fault is not None and shows(machine) else ""
    return [finding.check for finding in view.findings] == ([has] if has else [])


def _findings(machine: Machine, now: float) -> tuple[Finding, ...]:
    """Return what the checks of the machine's agent find."""
    if machine.fault is None or not shows(machine):
        return ()
    kind = machine.fault.kind
    number = int(machine.instance.removeprefix("i-"))
    finding = Finding(
        check=kind.check,
        outcome=Outcome.FAILED,
        severity=kind.severity,
        advice=kind.advice,
        text=kind.text,
        at=now,
        event=kind.check.startswith("kernel_log."),
        hardware=f"GPU-{number:08x}-0000-0000-0000-000000000000" if kind.name.startswith("gpu") else "",
    )
    return (finding,)


def shows(machine: Machine) -> bool:
    """Return whether a check of the machine's agent finds its fault."""
    return machine.fault is not None and machine.fault.kind.sign is FaultSign.FOUND
