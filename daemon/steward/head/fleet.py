"""The providers of all groups as one."""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType

from steward.model.ids import InstanceId
from steward.model.instance import Instance, Slot
from steward.ports import Permanent, ProviderPort


class Fleet:
    """Sends each call to the provider of the slot's group, or of the instance as last listed."""

    def __init__(self, by_group: Mapping[str, ProviderPort]) -> None:
        """Groups that share a provider are given the same object."""
        self._by_group = by_group
        self._providers = tuple({id(provider): provider for provider in by_group.values()}.values())
        self._lock = threading.Lock()
        self._owners: Mapping[InstanceId, ProviderPort] = MappingProxyType({})

    def describe(self) -> str:
        return "; ".join(provider.describe() for provider in self._providers)

    def instances(self) -> Mapping[InstanceId, Instance]:
        """All or nothing: a partial list would look as if machines had gone."""
        listed = [(provider, provider.instances()) for provider in self._providers]
        with self._lock:
            self._owners = {instance: provider for provider, found in listed for instance in found}
        return {instance: found[instance] for _, found in listed for instance in found}

    def launch(self, slot: Slot, token: str) -> Instance:
        provider = self._by_group.get(slot.group)
        if provider is None:
            raise Permanent(f"group {slot.group!r} of {slot.node} has no provider")
        return provider.launch(slot, token)

    def terminate(self, instance: InstanceId) -> None:
        self._each_owner(instance, lambda provider: provider.terminate(instance))

    def reboot(self, instance: InstanceId, token: str) -> None:
        self._each_owner(instance, lambda provider: provider.reboot(instance, token))

    def _each_owner(self, instance: InstanceId, call: Callable[[ProviderPort], None]) -> None:
        """An instance that was listed by nobody is unknown to us since a restart: look first."""
        if instance not in self._owners:
            self.instances()
        owner = self._owners.get(instance)
        if owner is not None:
            call(owner)
        elif len(self._providers) == 1:
            call(self._providers[0])
