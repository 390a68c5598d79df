"""The providers of all groups as one."""

import threading
from collections.abc import Mapping
from types import MappingProxyType

from steward.model.ids import InstanceId
from steward.model.instance import Instance, Slot
from steward.ports import Permanent, ProviderPort


class Fleet:
    """Sends each call to the provider of the slot's group, or of the instance as last listed or launched."""

    def __init__(self, by_group: Mapping[str, ProviderPort], others: ProviderPort | None = None) -> None:
        """Groups that share a provider are given the same object. `others` makes the machines of all other groups."""
        self._by_group = by_group
        self._others = others
        every = [*by_group.values(), *([others] if others is not None else [])]
        self._providers = tuple({id(provider): provider for provider in every}.values())
        self._lock = threading.Lock()
        self._listed: Mapping[InstanceId, ProviderPort] = MappingProxyType({})
        self._launched: dict[InstanceId, ProviderPort] = {}
        """What a provider may not list yet: kept until it was listed or ended."""

    def describe(self) -> str:
        return "; ".join(provider.describe() for provider in self._providers)

    def instances(self) -> Mapping[InstanceId, Instance]:
        """All or nothing: a partial list would look as if machines had gone."""
        listed = [(provider, provider.instances()) for provider in self._providers]
        with self._lock:
            self._listed = {instance: provider for provider, found in listed for instance in found}
            self._launched = {each: owner for each, owner in self._launched.items() if each not in self._listed}
        return {instance: found[instance] for _, found in listed for instance in found}

    def launch(self, slot: Slot, token: str) -> Instance:
        provider = self._by_group.get(slot.group, self._others)
        if provider is None:
            remedy = "add its [[groups]] table or set capacity.provider"
            raise Permanent(f"group {slot.group!r} of {slot.node} has no provider: {remedy}")
        made = provider.launch(slot, token)
        with self._lock:
            self._launched[made.id] = provider
        return made

    def terminate(self, instance: InstanceId) -> None:
        owner = self._owner(instance)
        if owner is None:
            return
        owner.terminate(instance)
        with self._lock:
            self._launched.pop(instance, None)

    def reboot(self, instance: InstanceId, token: str) -> None:
        owner = self._owner(instance)
        if owner is None:
            raise Permanent(f"no instance {instance} to reboot: no provider lists it")
        owner.reboot(instance, token)

    def _owner(self, instance: InstanceId) -> ProviderPort | None:
        """An instance that was listed by nobody is unknown to us since a restart: look first."""
        if len(self._providers) == 1:
            return self._providers[0]
        known = self._known(instance)
        if known is None:
            self.instances()
            known = self._known(instance)
        return known

    def _known(self, instance: InstanceId) -> ProviderPort | None:
        with self._lock:
            return self._listed.get(instance) or self._launched.get(instance)
