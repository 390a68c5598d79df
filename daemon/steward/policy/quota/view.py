"""The resources that each team owns, uses, lends and borrows, for tables and pages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steward.model.machine_types import BUILT_IN
from steward.model.node_names import fold
from steward.model.quota import CPU, GPU, MEM, ComputeQuota, Resource, machine_type_of, resource
from steward.policy.draft import Draft
from steward.policy.quota.decide import UnitStanding
from steward.policy.quota.fill_in import Owned, owned
from steward.policy.quota.requests import add
from steward.policy.quota.turn import Turn, take_turn
from steward.policy.quota.words import amounts_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRow:
    """A team's use of one resource.

    `counted`: the resource limits the team; other resources are only shown. `lent` is the part of the team's idle
    amount that others borrow. `share` is the borrowed part of the pool, divided by the team's weight (None: the team
    borrows and has weight 0, so that it comes last).
    """

    resource: Resource
    counted: bool
    nominal: int
    in_use: int
    lent: int
    borrowed: int
    may_borrow: int
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamView:
    """A team's quota and its use.

    `running` and `waiting` count jobs (None: the quota is not in force, or Slurm's accounting was not read).
    """

    quota: ComputeQuota
    rows: tuple[ResourceRow, ...]
    warnings: tuple[str, ...]
    running: int | None
    waiting: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceView:
    """A resource of the whole cluster.

    `capacity` is the amount of all nodes that take jobs, `owned` the sum of the quotas, `pool` the amount that may be
    borrowed, `free` the amount that no job holds. `stranded` is the free amount that no job can use, because no CPU or
    no memory is free beside it.
    """

    resource: Resource
    capacity: int
    owned: int
    pool: int
    free: int
    stranded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaView:
    """All quotas and resources, with warnings."""

    teams: tuple[TeamView, ...]
    resources: tuple[ResourceView, ...]
    warnings: tuple[str, ...]


def quota_view(draft: Draft) -> QuotaView:
    """Return a view of every quota in memory, including those not in force; change nothing."""
    turn = take_turn(draft)
    use = _use(turn) if turn else {}
    quotas = sorted(draft.quotas.values(), key=lambda quota: quota.team)
    rules = draft.want.quota
    worth = {q.team: owned(q, draft.want.capacity.types, count_filled=rules.count_filled) for q in quotas}
    lent = _lent(turn, use) if turn else {}
    teams = tuple(_team_view(quota, worth[quota.team], turn, use, lent) for quota in quotas)
    resources = tuple(_resource_views(turn, worth)) if turn else ()
    warnings = (
        *_warnings(resources, draft, turn.flavors.present if turn else None),
        *_warn_of_unowned(resources, turn),
        *_warn_of_untyped(turn),
    )
    return QuotaView(teams=teams, resources=resources, warnings=warnings)


def _warn_of_unowned(resources: tuple[ResourceView, ...], turn: Turn | None) -> Iterator[str]:
    """Yield a warning for each idle resource that no team owns and none may borrow, while jobs wait for it."""
    if turn is None or turn.idle_sharing:
        return
    waits = (ruling for ruling in turn.rulings.values() if ruling.standing is UnitStanding.WAITS)
    wanted = {name for ruling in waits for name in ruling.short}
    for row in resources:
        idle = min(row.free, row.capacity - row.owned - turn.homeless.get(row.resource, 0))
        if row.resource in wanted and idle > 0:
            yield (
                f"{amounts_text({row.resource: idle})} idle that no team owns, while jobs wait for such: "
                "IdleResourceSharing of the ClusterSchedulerConfig lends them"
            )


def _use(turn: Turn) -> dict[str, dict[Resource, int]]:
    """Return the amounts in use by team, before this turn's grants; jobs being evicted still hold theirs."""
    found: dict[str, dict[Resource, int]] = {}
    for team, held in turn.held.items():
        sums = found.setdefault(team, {})
        for part in held.parts:
            add(sums, part)
    return found


def _borrowed(turn: Turn, use: Mapping[str, Mapping[Resource, int]], team: str, name: Resource) -> int:
    """Return how much of a resource the team uses beyond its own."""
    if name not in turn.ledger.limits(team):
        return 0
    return max(0, use.get(team, {}).get(name, 0) - turn.ledger.accounts[team].owned.nominal.get(name, 0))


def _lent(turn: Turn, use: Mapping[str, Mapping[Resource, int]]) -> dict[tuple[str, Resource], int]:
    """Return how much of each team's idle part is borrowed."""
    ledger, found = turn.ledger, dict[tuple[str, Resource], int]()
    for name, pool in ledger.pool.items():
        total = sum(_borrowed(turn, use, team, name) for team in ledger.accounts)
        # there is no particular lender: count unowned resources as lent first, then each team's idle part by its size
        left = max(0, total - (pool - ledger.lendable[name]))
        idle = {team: _idle(turn, use, team, name) for team in ledger.accounts}
        for team, amount in sorted(idle.items(), key=lambda item: (-item[1], item[0])):
            whole = sum(idle.values())
            part = min(amount, -(-left * amount // whole)) if whole else 0
            found[team, name] = part
            left, idle[team] = left - part, 0
    return found


def _idle(turn: Turn, use: Mapping[str, Mapping[Resource, int]], team: str, name: Resource) -> int:
    """Return the amount that the team lends and does not use itself."""
    account = turn.ledger.accounts[team].owned
    nominal, lends = account.nominal.get(name, 0), account.lends.get(name, 0)
    return max(0, min(lends, nominal - use.get(team, {}).get(name, 0)))


def _team_view(
    quota: ComputeQuota,
    worth: Owned,
    turn: Turn | None,
    use: Mapping[str, Mapping[Resource, int]],
    lent: Mapping[tuple[str, Resource], int],
) -> TeamView:
    """Return the view of one team."""
    in_force = turn is not None and quota.team in turn.quotas
    mine = use.get(quota.team, {}) if in_force else {}
    limits = turn.ledger.limits(quota.team) if turn is not None and in_force else worth.counted
    names = sorted(set(worth.nominal) | {name for name in mine if name in limits}, key=_display_order)
    rows = []
    for name in names:
        borrowed = _borrowed(turn, use, quota.team, name) if turn is not None and in_force else 0
        pool = turn.ledger.pool.get(name, 0) if turn is not None else 0
        part = borrowed / max(pool, 1)
        rows.append(
            ResourceRow(
                resource=name,
                counted=name in limits,
                nominal=worth.nominal.get(name, 0),
                in_use=mine.get(name, 0),
                lent=lent.get((quota.team, name), 0) if name in limits else 0,
                borrowed=borrowed,
                may_borrow=worth.may_borrow.get(name, 0),
                share=part / quota.weight if quota.weight else None if part else 0.0,
            )
        )
    known = turn is not None and in_force
    waiting = sum(r.unit.count - r.granted for r in turn.rulings.values() if r.unit.team == quota.team) if turn else 0
    granted = sum(r.granted for r in turn.rulings.values() if r.unit.team == quota.team) if turn else 0
    return TeamView(
        quota=quota,
        rows=tuple(rows),
        warnings=worth.warnings,
        running=len(turn.running.get(quota.team, ())) if turn is not None and known else None,
        waiting=waiting + granted if known else None,
    )


def _resource_views(turn: Turn, worth: Mapping[str, Owned]) -> list[ResourceView]:
    """Return the resources that quotas name, and those of their machine types in the cluster."""
    types = sorted(turn.flavors.named)
    names = sorted(
        {resource(kind, unit) for kind in types for unit in (GPU, CPU, MEM)} & turn.flavors.capacity.keys()
        | {name for each in worth.values() for name in each.nominal},
        key=_display_order,
    )
    free = _free(turn, names)
    return [
        ResourceView(
            resource=name,
            capacity=turn.flavors.capacity.get(name, 0),
            owned=sum(worth[team].nominal.get(name, 0) for team in turn.quotas),
            pool=turn.ledger.pool.get(name, 0),
            free=free[name],
            stranded=free[name] if _is_stranded(name, free) else 0,
        )
        for name in names
    ]


def _free(turn: Turn, names: list[Resource]) -> dict[Resource, int]:
    """Return the free amounts before this turn's grants; jobs being evicted still hold theirs."""
    changed = dict.fromkeys(names, 0)
    granted = [(ruling.amounts, ruling.granted) for ruling in turn.rulings.values() if ruling.granted]
    going = [unit for units in turn.running.values() for unit in units if unit.id in turn.going]
    leaving = [*going, *(each.unit for each in turn.yielding)]
    for amounts, times in [*granted, *((unit.options[0], -1) for unit in leaving)]:
        for name in amounts.keys() & changed.keys():
            changed[name] += amounts[name] * times
    return {name: max(0, turn.ledger.free.get(name, 0) + changed[name]) for name in names}


def _is_stranded(name: Resource, free: Mapping[Resource, int]) -> bool:
    """Return whether these are accelerators on machines without a free CPU or free memory."""
    kind = machine_type_of(name)
    others = [resource(kind, unit) for unit in (CPU, MEM)]
    return name == resource(kind, GPU) and any(other in free and not free[other] for other in others)


def _warnings(resources: tuple[ResourceView, ...], draft: Draft, is_here: frozenset[str] | None) -> list[str]:
    """Return the warnings about quotas beyond the cluster's capacity and about stranded accelerators."""
    found = []
    for row in resources:
        beyond = row.owned - row.capacity
        if beyond > 0 and _decides(row.resource, draft):
            have, own = amounts_text({row.resource: row.capacity}), amounts_text({row.resource: row.owned})
            if is_here is not None and machine_type_of(row.resource) not in is_here:
                kind = machine_type_of(row.resource)
                found.append(f"quotas own {own}, and the cluster has no {kind}: their jobs wait until it has one")
                continue
            found.append(f"the quotas are {own} in all, but the cluster has {have} now: some jobs will wait")
        if row.stranded:
            found.append(
                f"{amounts_text({row.resource: row.stranded})} free, but no CPU or no memory beside them: stranded"
            )
    return found


def _warn_of_untyped(turn: Turn | None) -> Iterator[str]:
    """Yield a warning about accelerators on nodes of unknown machine type."""
    if turn is not None and (found := turn.flavors.without_type()):
        yield (
            f"{sum(found.values())} accelerators on nodes of no machine type ({fold(found)}): Slurm counts them "
            "against a team's limit, the tables do not; describe them in [[machine_types]]"
        )


def _decides(name: Resource, draft: Draft) -> bool:
    """Return whether the resource is the decisive one: accelerators if the machine type has any, else CPUs."""
    kind = machine_type_of(name)
    machine = draft.want.capacity.types.get(kind) or BUILT_IN.get(kind)
    return not name.endswith(f"/{MEM}") and (name.endswith(f"/{CPU}") != bool(machine and machine.gpus))


def _display_order(name: Resource) -> tuple[str, int, str]:
    """Return the sort key of a resource: accelerators before CPUs before memory."""
    kind = name.rpartition("/")[2]
    return machine_type_of(name), {CPU: 1, MEM: 2}.get(kind, 0), kind
