"""A provider that keeps its instances in a table, held to the contract that the real providers pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.ports import Permanent, PortError, Retryable


@dataclass(kw_only=True)
class FakeProvider:
    """`capacity` is how many more instances can be launched; `refuse` is raised by every call while it is set."""

    table: dict[InstanceId, Instance] = field(default_factory=dict)
    rebooted: list[tuple[InstanceId, str]] = field(default_factory=list)
    """(instance, token) of every reboot that was done."""
    capacity: int = 1000
    refuse: PortError | None = None
    now: float = 0.0
    launched: int = 0

    def describe(self) -> str:
        return "a fake provider"

    def instances(self) -> Mapping[InstanceId, Instance]:
        self._check()
        return dict(self.table)

    def launch(self, slot: Slot, token: str) -> Instance:
        self._check()
        same = next((instance for instance in self.table.values() if instance.token == token), None)
        if same is not None:
            return same
        if self.capacity <= 0:
            raise Retryable("capacity: none left")
        self.capacity -= 1
        return self._made(slot.node, token)

    def terminate(self, instance: InstanceId) -> None:
        self._check()
        if instance in self.table:
            self.table[instance] = replace(self.table[instance], state=InstanceState.GONE)

    def reboot(self, instance: InstanceId, token: str) -> None:
        self._check()
        if instance not in self.table or self.table[instance].state is InstanceState.GONE:
            raise Permanent(f"no instance {instance}")
        if (instance, token) not in self.rebooted:
            self.rebooted.append((instance, token))

    def _made(self, node: NodeName, token: str) -> Instance:
        self.launched += 1
        id = InstanceId(f"i-{self.launched:04d}")
        self.table[id] = Instance(id=id, node=node, state=InstanceState.RUNNING, token=token, launched=self.now)
        return self.table[id]

    def _check(self) -> None:
        if self.refuse is not None:
            raise self.refuse
