"""Provider of `State=CLOUD` nodes: Slurm's power states drive the site's own ResumeProgram and SuspendProgram.

An instance is one power cycle of a node. A cycle that Steward asked for has its token; one that Slurm began by itself
(a job needed the node) has none. A node that powers down and up again between two looks still counts as one instance.

The state is one JSON file, replaced as a whole: the token for which each node was last powered up.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from steward.adapters.files import SharedText, StateFile
from steward.adapters.slurm.power import Power, PowerSwitch, power_of
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.node import Node
from steward.model.port_error import NOT_YET
from steward.model.settings.clouds import PowerProviderSettings as PowerSettings
from steward.ports import Permanent, PortError, Retryable, Stale


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCycle:
    """A power cycle of a node that Steward asked for. `since` is Unix seconds.

    `ended`: the machine that runs as the node now, if any, is of another cycle.
    """

    node: NodeName
    token: str
    since: float
    ended: bool = False
    leaving: bool = False
    """Whether Steward ended the cycle and has not seen the node powered down yet: Slurm may have lost the order."""
    was_coming: bool = False
    """Whether the node was seen on its way up, or up."""
    was_on: bool = False
    """Whether the node was seen up."""
    why: str = ""
    """Why the cycle ended by itself."""

    @property
    def id(self) -> InstanceId:
        return InstanceId(f"power-{self.node}-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}")


Cycles = Mapping[NodeName, PowerCycle]


def records(path: Path, shared: SharedText | None = None) -> StateFile[Cycles]:
    """Return the file with the last cycle of each node, which shows whose machine runs as the node."""
    return StateFile(
        path=path,
        owner="power provider",
        remedy="restore it",
        empty=dict,
        of_json=lambda told: {cycle.node: cycle for cycle in (PowerCycle(**entry) for entry in told)},
        to_json=lambda cycles: [asdict(cycle) for cycle in cycles.values()],
        shared=shared,
    )


_UP = (Power.ASKED, Power.COMING, Power.ON)
_CAN_END = (Power.COMING, Power.ON)
"""The power states in which a node can be powered down. A node that was only told to power up has to come up first: if
its cycle was ended, it is powered down then."""
Read = Callable[[], Mapping[NodeName, Node]]
_STATES = {
    Power.OFF: InstanceState.GONE,
    Power.ASKED: InstanceState.PENDING,
    Power.COMING: InstanceState.PENDING,
    Power.ON: InstanceState.RUNNING,
    Power.GOING: InstanceState.GONE,
}


class PowerProvider:
    """ProviderPort on power states. It may power `nodes`; `read` returns Slurm's nodes; `state` is the file of tokens.

    Several heads keep these in their `shared` text.
    Safe to call from several threads and processes at once.
    """

    def __init__(
        self,
        settings: PowerSettings,
        nodes: Iterable[NodeName],
        state: Path,
        read: Read,
        switch: PowerSwitch,
        shared: SharedText | None = None,
    ) -> None:
        self._settings = settings
        self._nodes = tuple(nodes)
        self._records = records(state, shared)
        self._read = read
        self._switch = switch

    def describe(self) -> str:
        return f"power: {len(self._nodes)} nodes by Slurm's ResumeProgram and SuspendProgram"

    def instances(self) -> Mapping[InstanceId, Instance]:
        with self._records.locked() as cycles:
            nodes = self._read()
            now = {node: self._brought_up_to_date(cycle, power_of(nodes.get(node))) for node, cycle in cycles.items()}
            going = [
                cycle.node for cycle in now.values() if cycle.leaving and power_of(nodes.get(cycle.node)) in _CAN_END
            ]
            # The write comes first: of several heads, it is refused to one that does not lead.
            if now != cycles or going:
                self._records.save(now)
            for node in going:
                self._switch_off(node)
        found = [self._instance(cycle, nodes.get(cycle.node)) for cycle in now.values()]
        found += [
            _unasked(name, nodes[name])
            for name in self._nodes
            if power_of(nodes.get(name)) in _UP and (name not in now or (now[name].ended and not now[name].leaving))
        ]
        return {instance.id: instance for instance in found}

    def launch(self, slot: Slot, token: str) -> Instance:
        if slot.node not in self._nodes:
            remedy = "its group needs a [[groups]] table with State=CLOUD nodes of slurm.conf"
            raise Permanent(f"power provider: {slot.node} is not one of its nodes; {remedy}")
        with self._records.locked() as cycles:
            node = self._read().get(slot.node)
            known = cycles.get(slot.node)
            if known is not None and known.token == token:
                return self._launch_again(known, node)
            self._must_be_free(slot.node, known, node)
            cycle = PowerCycle(node=slot.node, token=token, since=time.time())
            self._records.save({**cycles, slot.node: cycle})
            try:
                self._switch_on(slot.node)
            except PortError:
                self._records.save(cycles)
                raise
        return self._instance(cycle, self._read().get(slot.node))

    def terminate(self, instance: InstanceId) -> None:
        with self._records.locked() as cycles:
            nodes = self._read()
            mine = next((cycle for cycle in cycles.values() if cycle.id == instance and not cycle.ended), None)
            name = mine.node if mine is not None else self._unasked_node(instance, cycles)
            if name is None:
                return
            if power_of(nodes.get(name)) in _CAN_END:
                self._switch_off(name)
            if mine is not None:
                self._records.save({**cycles, name: replace(mine, ended=True, leaving=True)})

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Raise Permanent: the power states offer no reboot."""
        # Powering a node down clears its drain, and it would take jobs before it is verified.
        raise Permanent(f"{instance} cannot be rebooted: Slurm's power states can only replace it; replace the node")

    def _launch_again(self, cycle: PowerCycle, node: Node | None) -> Instance:
        """Return the instance of a cycle that is launched again; power the node up if the first launch did not."""
        # The earlier caller may have died between the record and the command.
        if not cycle.ended and power_of(node) is Power.OFF and self._is_young(cycle):
            self._switch_on(cycle.node)
            node = self._read().get(cycle.node)
        return self._instance(cycle, node)

    def _must_be_free(self, name: NodeName, known: PowerCycle | None, node: Node | None) -> None:
        power = power_of(node)
        if known is not None and known.leaving and (power is not Power.OFF or self._is_unsettled(known)):
            raise Retryable(f"{NOT_YET}: {name} is still powering down; a power-up now could be lost")
        known = known if known is not None and not known.ended else None
        match power:
            case Power.GOING:
                raise Retryable(
                    f"{NOT_YET}: {name} is still powering down (SuspendTimeout); a power-up now would be lost"
                )
            case Power.ON | Power.COMING | Power.ASKED:
                there = known.id if known is not None else _unasked_id(name)
                raise Retryable(f"{name}: instance {there} still has this name; terminate it first")
            case Power.OFF:
                if known is not None and self._is_young(known):
                    raise Retryable(f"{name}: instance {known.id} still has this name; terminate it first")

    def _switch_on(self, name: NodeName) -> None:
        """Power the node up. Raises Permanent if power saving is off in Slurm."""
        self._switch.up(name)
        node = self._read().get(name)
        # Where power saving is off, Slurm accepts the order and does nothing.
        if node is not None and power_of(node) is Power.OFF:
            remedy = "set ResumeProgram, SuspendProgram and a SuspendTime other than INFINITE in slurm.conf"
            raise Permanent(f"Slurm accepted power_up of {name} and did nothing: power saving is off; {remedy}")

    def _switch_off(self, name: NodeName) -> None:
        try:
            self._switch.down(name)
        except Stale:
            return  # Slurm does not know the node any more

    def _brought_up_to_date(self, cycle: PowerCycle, power: Power) -> PowerCycle:
        """Return the cycle after a look at the node's power; a cycle ends for good once the node is off."""
        if cycle.leaving and power is Power.OFF and not self._is_unsettled(cycle):
            return replace(cycle, leaving=False)
        if cycle.ended:
            return cycle
        if power in _UP:
            return replace(cycle, was_coming=True, was_on=cycle.was_on or power is Power.ON)
        if power is Power.OFF and not cycle.was_coming and self._is_young(cycle):
            return cycle
        failed = "the node did not come up: ResumeProgram failed, or Slurm's ResumeTimeout was reached"
        return replace(cycle, ended=True, why="Slurm powered it down" if cycle.was_on else failed)

    def _is_unsettled(self, cycle: PowerCycle) -> bool:
        """Return whether the cycle is so new that a node that is off may still be about to come up."""
        return time.time() < cycle.since + self._settings.order_s

    def _is_young(self, cycle: PowerCycle) -> bool:
        return time.time() < cycle.since + self._settings.settle_s

    def _instance(self, cycle: PowerCycle, node: Node | None) -> Instance:
        state = InstanceState.GONE if cycle.ended else _STATES[power_of(node)]
        if not cycle.ended and power_of(node) is Power.OFF:
            state = InstanceState.PENDING
        return Instance(
            id=cycle.id,
            node=cycle.node,
            state=state,
            token=cycle.token,
            launched=cycle.since,
            address=node.address if node is not None and state is InstanceState.RUNNING else "",
            interrupted=cycle.why,
        )

    def _unasked_node(self, instance: InstanceId, cycles: Mapping[NodeName, PowerCycle]) -> NodeName | None:
        """Return the node of a cycle that Slurm began; None if there is none, or the node has a cycle of ours."""
        free = (name for name in self._nodes if name not in cycles or cycles[name].ended)
        return next((name for name in free if _unasked_id(name) == instance), None)


def _unasked_id(name: NodeName) -> InstanceId:
    return InstanceId(f"power-{name}")


def _unasked(name: NodeName, node: Node) -> Instance:
    """Return the instance of a cycle that Slurm began by itself."""
    return Instance(id=_unasked_id(name), node=name, state=_STATES[power_of(node)], address=node.address)
