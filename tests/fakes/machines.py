"""The simulated provider and its machines."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from steward.model.agent_action import MendNode
from steward.model.health import Advice, Finding, Outcome, Scope, Severity
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.job_report import Progress
from steward.model.job_sight import StepSight
from steward.model.mend import MendReport
from steward.model.observed import AgentView
from steward.model.witness import PeerWord, Witness, WitnessSeen
from tests.fakes.machine import REGISTER_S, Machine

BOOT_S = 3.0
LATE_S = 1.75
GONE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """A spare that serves in place of another node."""

    node: NodeName
    instead_of: NodeName | None


@dataclass(slots=True)
class Machines:
    """All machines that exist. `launched` counts the machines ever made for each token.

    `fixed`: none is ever made or goes away; one that was killed is off until it is rebooted. `loans` are by token.
    """

    fixed: bool = False
    loans: dict[str, Loan] = field(default_factory=dict)

    alive: dict[InstanceId, Machine] = field(default_factory=dict)
    launched: dict[str, int] = field(default_factory=dict)
    made: int = 0
    mended: Counter[tuple[BootId, str]] = field(default_factory=Counter)
    """How often an agent really did what was ordered, by boot and token."""
    mend_errors: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    room: int | None = None
    """How many machines the provider has at most; None: as many as are asked for."""
    shut: bool = False
    """No new connection is let in: nobody can prove who he is."""
    _views: dict[NodeName, AgentView] = field(default_factory=dict)
    _heard: dict[NodeName, float] = field(default_factory=dict)
    """When agents were heard that have said nothing new since their views were made."""

    @property
    def views(self) -> Mapping[NodeName, AgentView]:
        """What the head has heard of each agent. Not to be kept."""
        for node in list(self._heard):
            self._view(node)
        return self._views

    def _view(self, node: NodeName) -> AgentView | None:
        view, heard = self._views.get(node), self._heard.pop(node, None)
        if view is not None and heard is not None:
            view = self._views[node] = replace(view, last_heard=heard, reported_at=heard)
        return view

    def known(self) -> Iterable[NodeName]:
        """The nodes of which there are views."""
        return self._views.keys()

    def is_connected(self, node: NodeName) -> bool:
        view = self._views.get(node)
        return view is not None and view.connected

    def tell(
        self,
        node: NodeName,
        progress: tuple[Progress, ...],
        sights: tuple[StepSight, ...],
        bundles: tuple[str, ...],
    ) -> None:
        """A connected agent tells of the jobs on its node."""
        if (view := self._view(node)) is not None:
            self._views[node] = replace(view, progress=progress, sights=sights, bundles=bundles)

    def add(self, node: NodeName, token: str, now: float, boot_s: float = BOOT_S) -> Machine:
        self.made += 1
        machine = Machine(id=InstanceId(f"i-{self.made}"), node=node, token=token, ready_at=now + boot_s)
        self.alive[machine.id] = machine
        self.launched[token] = self.launched.get(token, 0) + 1
        return machine

    def of(self, node: NodeName) -> Machine | None:
        for machine in self.alive.values():
            if machine.node == node:
                return machine
        return None

    def firsts(self) -> dict[NodeName, Machine]:
        """`of` for every node that has one."""
        found: dict[NodeName, Machine] = {}
        for machine in self.alive.values():
            found.setdefault(machine.node, machine)
        return found

    def launch(self, node: NodeName, token: str, now: float) -> str:
        """The error, or empty. The same token makes one machine, however often it is asked for."""
        if self.refusals:
            return self.refusals.pop(0)
        if token not in self.launched:
            if self.room is not None and len(self.alive) >= self.room:
                return "capacity: none left"
            self.add(node, token, now)
        return ""

    def lend(self, slot: Slot, token: str) -> str:
        """The error, or empty."""
        if self.refusals:
            return self.refusals.pop(0)
        if token not in self.loans and any(loan.node == slot.node for loan in self.loans.values()):
            return f"capacity: {slot.node} is lent already"
        self.loans.setdefault(token, Loan(node=slot.node, instead_of=slot.instead_of))
        return ""

    def terminate(self, id: InstanceId) -> None:
        if self.fixed:
            self.loans.pop(id.partition("/")[2], None)
        else:
            self.alive.pop(id, None)

    def reboot(self, id: InstanceId, now: float) -> str:
        machine = self.alive.get(InstanceId(id.partition("/")[0]))
        if machine is None:
            return f"no instance {id}"
        machine.boot += 1
        machine.mute, machine.findings, machine.checked_at, machine.shifted = False, (), 0.0, 0.0
        machine.cut = machine.off = False
        machine.mend, machine.cured_by = None, frozenset()
        machine.agent = machine.slurmd = True
        machine.ready_at = now + BOOT_S
        return ""

    def listed(self, now: float) -> Mapping[InstanceId, Instance]:
        def state(machine: Machine) -> InstanceState:
            if machine.off:
                return InstanceState.STOPPED
            return InstanceState.RUNNING if now >= machine.ready_at else InstanceState.PENDING

        lent = {loan.node: (token, loan) for token, loan in self.loans.items()}
        listed = {}
        for m in self.alive.values():
            made = Instance(id=m.id, node=m.node, state=state(m), token=m.token, launched=m.started)
            if m.node in lent:
                token, loan = lent[m.node]
                id = InstanceId(f"{m.id}/{token}")
                made = replace(made, id=id, token=token, instead_of=loan.instead_of)
            listed[made.id] = made
        return listed

    def kill(self, node: NodeName) -> None:
        machine = self.of(node)
        if machine and self.fixed:
            machine.ready_at, machine.mute = math.inf, False
        elif machine:
            del self.alive[machine.id]

    def mend(self, node: NodeName, now: float) -> None:
        """A person repairs the machine and switches it on."""
        machine = self.of(node)
        if machine:
            self.reboot(machine.id, now)

    def mute(self, node: NodeName, now: float) -> None:
        machine = self.of(node)
        if machine and not machine.mute:
            machine.mute, machine.muted_at = True, now

    def unmute(self, node: NodeName, *, frozen: bool = True) -> None:
        """Back from a cut; `frozen`: from a freeze, too."""
        if machine := self.of(node):
            machine.cut, machine.mute = False, machine.mute and (machine.off or not frozen)

    def power_off(self, node: NodeName, now: float) -> None:
        """As `mute`, and the provider lists it as stopped."""
        self.mute(node, now)
        if machine := self.of(node):
            machine.off = True

    def cut_off(self, node: NodeName, now: float) -> None:
        machine = self.of(node)
        if machine:
            machine.cut, machine.muted_at = True, now

    def restart_agent(self, node: NodeName, now: float, away_s: float) -> None:
        machine = self.of(node)
        if machine:
            machine.agent_back_at = now + away_s

    def restart_services(self, node: NodeName, now: float, away_s: float) -> None:
        """slurmd and the agent, both told to end, as by a tool that restarts what uses a new library. Jobs go on."""
        machine = self.of(node)
        if machine:
            machine.took_leave |= machine.agent_lives(now)
            machine.agent_back_at = machine.slurmd_back_at = now + away_s

    def carry_out(self, order: MendNode, now: float) -> str:
        """The agent does it once a token and boot, and tells how it ended. The error is the head's: nobody is there."""
        machine = self.of(order.node)
        if machine is None or not machine.agent_speaks(now):
            return "its agent is not connected"
        if machine.mend is not None and machine.mend.token == order.token:
            return ""
        self.mended[machine.incarnation.boot, order.token] += 1
        error = self.mend_errors.pop(0) if self.mend_errors else ""
        machine.mend = MendReport(token=order.token, error=error, at=now)
        if not error and order.rung in machine.cured_by:
            machine.findings = ()
        return ""

    def fail_check(
        self,
        node: NodeName,
        severity: Severity,
        advice: Advice,
        now: float,
        check: str,
        *,
        hardware: str = "",
        scope: Scope = Scope.NODE,
        cured_by: frozenset[Advice] = frozenset(),
    ) -> None:
        machine = self.of(node)
        if machine:
            machine.cured_by = cured_by
            text = "Xid 79; $(touch /tmp/pwned) `id`"
            machine.findings = (
                Finding(
                    check=check,
                    outcome=Outcome.FAILED,
                    severity=severity,
                    advice=advice,
                    text=text,
                    at=now,
                    event=severity is Severity.FATAL,
                    hardware=hardware,
                    scope=scope,
                ),
            )

    def look(self, node: NodeName, now: float) -> None:
        """The second witness's answer is kept with the view."""
        machine = self.of(node)
        if machine is None or now < machine.ready_at:
            result = Witness.REFUSED
        elif machine.mute or machine.cut:
            result = Witness.SILENT
        else:
            result = Witness.ALIVE if machine.slurmd_speaks(now) else Witness.REFUSED
        view = self._view(node) or AgentView(node=node, incarnation=None, connected=False, last_heard=0.0)
        self._views[node] = replace(view, witness=WitnessSeen(result=result, at=now))

    def peers_look(self, node: NodeName, peers: Iterable[NodeName], now: float) -> None:
        """Agents of other nodes look, too: what is cut off is cut off from the head and Slurm's controller alone."""
        machine, view = self.of(node), self._view(node)
        answers = machine is not None and machine.is_up(now) and machine.slurmd and now >= machine.ready_at + REGISTER_S
        result = Witness.ALIVE if answers else Witness.SILENT
        for peer in peers:
            at = self.of(peer)
            if view is not None and at is not None and at.agent_speaks(now):
                others = tuple(word for word in view.peers if word.by != peer)
                view = replace(view, peers=(*others, PeerWord(by=peer, result=result, at=now)))
                self._views[node] = view

    def check_now(self, node: NodeName, now: float) -> None:
        machine = self.of(node)
        if machine and machine.agent_speaks(now):
            machine.checked_at = now

    def forget_views(self) -> None:
        """The head was restarted."""
        self._views.clear()
        self._heard.clear()

    def update_views(self, nodes: Iterable[NodeName], now: float) -> None:
        machines = self.firsts()
        for node in nodes:
            self._update_view(node, machines.get(node), now)

    def _update_view(self, node: NodeName, machine: Machine | None, now: float) -> None:
        view = self._views.get(node)
        if machine and machine.agent_speaks(now) and (not self.shut or (view is not None and view.connected)):
            same = view is not None and view.connected and view.incarnation == machine.incarnation
            if same and view is not None and _tells(view, machine):
                self._heard[node] = now
                return
            self._heard.pop(node, None)
            machine.took_leave = False
            self._views[node] = AgentView(
                node=node,
                incarnation=machine.incarnation,
                connected=True,
                last_heard=now,
                joined_at=view.joined_at if view is not None and view.connected else now,
                findings=machine.findings,
                reported_at=now,
                checked_at=machine.checked_at,
                setup=machine.setup,
                mend=machine.mend,
                witness=view.witness if same and view else None,
            )
        elif view is not None and view.connected:
            self._views[node] = self._gone(self._view(node) or view, machine, now)

    def _gone(self, view: AgentView, machine: Machine | None, now: float) -> AgentView:
        """A dead process's connection breaks at once; a mute one's is given up after its heartbeats stayed away."""
        same = machine is not None and view.incarnation == machine.incarnation
        if same and machine is not None and (machine.mute or machine.cut) and now < machine.muted_at + GONE_S:
            return replace(view, late=now >= machine.muted_at + LATE_S)
        why = "silent" if same else "connection reset"
        leaves = same and machine is not None and machine.took_leave
        return replace(view, connected=False, late=False, lost_at=now, lost_why=why, witness=None, leaves=leaves)


def _tells(view: AgentView, machine: Machine) -> bool:
    """Whether the view is what the agent says now, but for the time."""
    is_plain = not (view.late or view.peers or view.progress or view.bundles)
    is_told = view.findings is machine.findings and view.checked_at == machine.checked_at
    return is_plain and is_told and view.setup is machine.setup and view.mend is machine.mend
