"""The amounts of a quota: those requested, and those filled in from the machine type.

`Count` means whole machines. Otherwise the largest requested share of a machine (of its accelerators, CPUs or memory)
gives the CPUs and the memory that were not requested; accelerators are never filled in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from types import MappingProxyType

from steward.model.machine_types import MachineType
from steward.model.quota import CPU, GPU, MEM, ComputeQuota, Resource, Share, profile_of, resource

_MIB_PER_GIB = 1024
_SLICES = 7
"""Compute slices of one accelerator: a MIG profile `2g.10gb` has two of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The resources of a team.

    `nominal` are its own amounts, `lends` the part of these that others may use, `may_borrow` the amounts that it may
    use beyond its own. `counted` are the resources that limit it; the other resources are only shown.
    """

    nominal: Mapping[Resource, int]
    lends: Mapping[Resource, int]
    may_borrow: Mapping[Resource, int]
    counted: frozenset[Resource]
    warnings: tuple[str, ...] = ()

    def private(self, name: Resource) -> int:
        """Return the part of a resource that is never lent."""
        return self.nominal.get(name, 0) - self.lends.get(name, 0)


def owned(quota: ComputeQuota, types: Mapping[str, MachineType], *, count_filled: bool = False) -> Owned:
    """Return the resources that a quota gives its team."""
    nominal: dict[Resource, int] = {}
    counted: set[Resource] = set()
    for share in quota.shares:
        # for a machine type without a description, only the requested amounts are known
        machine = types.get(share.machine_type, MachineType(name=share.machine_type))
        values = fill_in_quota(share, machine)
        for kind, amount in values.items():
            name = resource(share.machine_type, kind)
            nominal[name] = nominal.get(name, 0) + amount
        kinds = values if count_filled else asked_kinds(share, machine)
        counted |= {resource(share.machine_type, kind) for kind in kinds}
    borrow = _may_borrow(quota, nominal, types)
    return Owned(
        nominal=MappingProxyType(nominal),
        lends=MappingProxyType(dict(nominal) if quota.strategy.lends else dict.fromkeys(nominal, 0)),
        may_borrow=MappingProxyType(borrow),
        counted=frozenset(counted),
        warnings=tuple(_warnings(quota, nominal, borrow, counted)),
    )


@lru_cache(maxsize=4096)
def fill_in_quota(share: Share, machine: MachineType) -> Mapping[str, int]:
    """Return the amount of each kind (CPUs, MiB, accelerators), rounded down, without kinds that the machine lacks."""
    found: dict[str, int] = {}
    if share.count is not None:
        found = {GPU: machine.gpus * share.count, CPU: machine.cpus * share.count, MEM: machine.memory_mb * share.count}
    else:
        ratio = max(_ratios(share, machine), default=Fraction(0))
        found = {GPU: 0, CPU: floor(ratio * machine.cpus), MEM: floor(ratio * machine.memory_mb)}
    found |= {kind: amount for kind, amount in _requested(share).items() if amount is not None}
    asked = asked_kinds(share, machine)
    return MappingProxyType({kind: amount for kind, amount in found.items() if amount or kind in asked})


def asked_kinds(share: Share, machine: MachineType) -> frozenset[str]:
    """Return the requested kinds, and the decisive kind: accelerators if the machine has any, else CPUs."""
    named = {kind for kind, amount in _requested(share).items() if amount is not None}
    has_gpus = bool(machine.gpus or share.accelerators)
    return frozenset(named | {GPU if has_gpus else CPU})


def _requested(share: Share) -> dict[str, int | None]:
    """Return the requested amount of each kind; None for kinds that were not requested."""
    said: dict[str, int | None] = {
        GPU: share.accelerators,
        CPU: None if share.vcpu is None else floor(share.vcpu),
        MEM: None if share.memory_gib is None else floor(Fraction(share.memory_gib) * _MIB_PER_GIB),
    }
    if share.partition is not None:
        profile, count = share.partition
        said[f"{GPU}:{profile_of(profile) or profile}"] = count
    return said


def _ratios(share: Share, machine: MachineType) -> Iterable[Fraction]:
    """Yield the ratio of each requested resource to that of one machine."""
    if share.accelerators is not None and machine.gpus:
        yield Fraction(share.accelerators, machine.gpus)
    if share.vcpu is not None and machine.cpus:
        yield Fraction(share.vcpu) / machine.cpus
    if share.memory_gib is not None and machine.memory_mb:
        yield Fraction(share.memory_gib) * _MIB_PER_GIB / machine.memory_mb
    if share.partition is not None and machine.gpus and (profile := profile_of(share.partition[0])):
        yield Fraction(int(profile.partition("g")[0]) * share.partition[1], _SLICES * machine.gpus)


def _may_borrow(
    quota: ComputeQuota, nominal: Mapping[Resource, int], types: Mapping[str, MachineType]
) -> dict[Resource, int]:
    """Return the amounts that the team may use beyond its own."""
    if not quota.strategy.borrows:
        return dict.fromkeys(nominal, 0)
    limits = {name: amount * quota.borrow_percent // 100 for name, amount in nominal.items()}
    for share in quota.borrow_absolute:
        machine = types.get(share.machine_type, MachineType(name=share.machine_type))
        for kind, amount in fill_in_quota(share, machine).items():
            limits[resource(share.machine_type, kind)] = amount
    return limits


def _warnings(
    quota: ComputeQuota, nominal: Mapping[Resource, int], borrow: Mapping[Resource, int], counted: set[Resource]
) -> Iterable[str]:
    """Yield a warning for each resource of which the team can never borrow because its share rounds to 0."""
    if not (quota.strategy.borrows and quota.borrow_percent):
        return
    for name in sorted(counted):
        if nominal.get(name) and not borrow.get(name):
            yield f"{quota.borrow_percent} % of {nominal[name]} {name} is 0: {quota.team} can never borrow it"
