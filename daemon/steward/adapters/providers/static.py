"""Provider of a site with fixed machines, which are never made or thrown away.

A launch lends a spare machine to the case that asks with its token, an end of that instance takes the machine back, and
a reboot runs the site's command. Whether the spare is sound, and when it serves, is decided elsewhere.

The state is one small JSON file, replaced as a whole.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from steward.adapters.files import SharedText, StateFile
from steward.adapters.process import Failed, run
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.port_error import CAPACITY
from steward.model.settings.providers import StaticProviderSettings as StaticSettings
from steward.ports import Permanent, Retryable

_TOKENS_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """A spare that serves in place of another node. `since` is Unix seconds."""

    node: NodeName
    instead_of: NodeName | None
    token: str
    since: float

    @property
    def id(self) -> InstanceId:
        return InstanceId(f"static-{self.node}-{self.token}")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The content of the provider's file. `reboots` are the tokens of the last reboots, oldest first."""

    loans: tuple[Loan, ...] = ()
    reboots: tuple[str, ...] = ()

    def with_reboot(self, token: str) -> "State":
        return replace(self, reboots=(*self.reboots, token)[-_TOKENS_KEPT:])

    def without_reboot(self, token: str) -> "State":
        return replace(self, reboots=tuple(kept for kept in self.reboots if kept != token))


def records(path: Path, shared: SharedText | None = None) -> StateFile[State]:
    """Return the file with the loans of spares and the last reboots."""
    return StateFile(
        path=path,
        owner="static provider",
        remedy="restore it, or remove it when no spare serves",
        empty=State,
        of_json=lambda told: State(loans=tuple(Loan(**loan) for loan in told["loans"]), reboots=tuple(told["reboots"])),
        to_json=asdict,
        shared=shared,
    )


_STATUS_TIMEOUT_S = 5.0
_AT_ONCE = 16
_OUTPUT_KEPT = 65536


class StaticProvider:
    """ProviderPort on fixed machines: `nodes`, with the spares. `state` is the file of loans and reboots.

    Several heads keep these in their `shared` text.

    Every method is safe to call from several threads and processes at once.
    """

    def __init__(
        self, settings: StaticSettings, nodes: Iterable[NodeName], state: Path, shared: SharedText | None = None
    ) -> None:
        self._settings = settings
        self._nodes = tuple(nodes)
        self._records = records(state, shared)

    def describe(self) -> str:
        reboot = self._settings.reboot[0] if self._settings.reboot else "no command"
        return f"static: {len(self._nodes)} machines, spares {self._settings.spares or 'none'}, reboot by {reboot}"

    def instances(self) -> Mapping[InstanceId, Instance]:
        """Return every machine, under the id of its loan while it is lent."""
        lent = {loan.node: loan for loan in self._records.load().loans}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            states = dict(zip(self._nodes, pool.map(self._state_of, self._nodes), strict=True))
        machines = [_lent(lent[node]) if node in lent else _machine(node) for node in self._nodes]
        return {machine.id: replace(machine, state=states[machine.node]) for machine in machines}

    def launch(self, slot: Slot, token: str) -> Instance:
        """Lend the machine named by the slot."""
        if slot.node not in self._nodes:
            raise Permanent(f"static provider: {slot.node} is in no static group and no spare; correct the settings")
        with self._records.locked() as state:
            known = next((loan for loan in state.loans if loan.token == token), None)
            other = next((loan for loan in state.loans if loan.node == slot.node and loan.token != token), None)
            if known is None and other is not None:
                raise Retryable(f"{CAPACITY}: {slot.node} already serves in place of {other.instead_of}")
            loan = known or Loan(node=slot.node, instead_of=slot.instead_of, token=token, since=time.time())
            if known is None:
                self._records.save(replace(state, loans=(*state.loans, loan)))
        return _lent(loan)

    def terminate(self, instance: InstanceId) -> None:
        """Take a lent machine back, which keeps running. Raises Permanent for a machine that is not lent."""
        if instance in {_machine(node).id for node in self._nodes}:
            raise Permanent(f"static provider: {instance} is a fixed machine; it can be rebooted, not ended")
        with self._records.locked() as state:
            kept = tuple(loan for loan in state.loans if loan.id != instance)
            if kept != state.loans:
                self._records.save(replace(state, loans=kept))

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Reboot by the site's command, at most once for each token.

        The token is noted before the command runs, and forgotten only if the command failed or never began.
        """
        node = self._node_of(instance)
        if not self._settings.reboot:
            raise Permanent(f"{node} cannot be rebooted: set provider.static.reboot to the site's command")
        with self._records.locked() as state:
            if token in state.reboots:
                return
            self._records.save(state.with_reboot(token))
        self._run_reboot(node, token)

    def _run_reboot(self, node: NodeName, token: str) -> None:
        argv = _for_node(self._settings.reboot, node)
        try:
            done = run(argv, timeout_s=self._settings.reboot_timeout_s, max_bytes=_OUTPUT_KEPT, check=False)
        except Failed as failed:
            if failed.completed is None:  # the command never began; one that timed out may have rebooted the machine
                self._forget_reboot(token)
            raise
        if done.returncode != 0:
            self._forget_reboot(token)
            raise Retryable(f"{node} was not rebooted: {done.line()}")

    def _forget_reboot(self, token: str) -> None:
        with self._records.locked() as state:
            self._records.save(state.without_reboot(token))

    def _node_of(self, instance: InstanceId) -> NodeName:
        ids = {_machine(node).id: node for node in self._nodes}
        ids |= {loan.id: loan.node for loan in self._records.load().loans}
        if instance not in ids:
            raise Permanent(f"static provider: there is no machine {instance!r}; is its node still in the settings?")
        return ids[instance]

    def _state_of(self, node: NodeName) -> InstanceState:
        """Return the machine's state by the site's status command; UNKNOWN if the command gives no answer."""
        if not self._settings.status:
            return InstanceState.RUNNING
        argv = _for_node(self._settings.status, node)
        try:
            done = run(argv, timeout_s=_STATUS_TIMEOUT_S, max_bytes=_OUTPUT_KEPT, check=False)
        except Failed:
            return InstanceState.UNKNOWN
        return InstanceState.RUNNING if done.returncode == 0 else InstanceState.STOPPED


def _machine(node: NodeName) -> Instance:
    return Instance(id=InstanceId(f"static-{node}"), node=node, state=InstanceState.RUNNING)


def _lent(loan: Loan) -> Instance:
    return Instance(
        id=loan.id,
        node=loan.node,
        state=InstanceState.RUNNING,
        token=loan.token,
        launched=loan.since,
        instead_of=loan.instead_of,
    )


def _for_node(argv: tuple[str, ...], node: NodeName) -> list[str]:
    return [word.replace("%n", node) for word in argv]
