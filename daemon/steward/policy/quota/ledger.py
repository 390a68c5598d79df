"""The ledger of the resources that each team owns, uses, lends and borrows, made anew from each picture of Slurm.

For a team and a resource, N is the nominal amount, L the part of N that may be lent, and B the most that may be
borrowed beyond N. The private part N - L is never lent. The pool is the sum of all L, plus the resources of no team if
these are shared. A team's use beyond its private part counts against the pool: there is no particular lender.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.quota import CPU, Resource, kind_of
from steward.policy.quota.fill_in import Owned
from steward.policy.quota.requests import Amounts

_WITHOUT_WEIGHT = float("inf")


@dataclass(slots=True, kw_only=True)
class TeamAccount:
    """The account of a team. `use` may have any resource; only those in `Ledger.limits` are counted."""

    team: str
    owned: Owned
    weight: int = 0
    use: dict[Resource, int] = field(default_factory=dict)

    def borrowed(self, name: Resource) -> int:
        """Return how much of a resource the team uses beyond its own."""
        return max(0, self.use.get(name, 0) - self.owned.nominal.get(name, 0))


class _Limits:
    """The counted part of each request, worked out once for all teams that are limited in the same resources."""

    def __init__(self, names: frozenset[Resource]) -> None:
        self.names = names
        self._counted: dict[int, tuple[Amounts, Amounts]] = {}
        self._asked: dict[int, tuple[tuple[Amounts, ...], tuple[Amounts, ...]]] = {}
        """By the id of the request; the request is kept, so that no other object gets its id."""
        self._parts: dict[frozenset[tuple[Resource, int]], Amounts] = {}
        self._lists: dict[tuple[int, ...], tuple[Amounts, ...]] = {}

    def counted(self, amounts: Amounts) -> Amounts:
        """Return the part of the amounts that counts."""
        known = self._counted.get(id(amounts))
        if known is None:
            found = {name: amount for name, amount in amounts.items() if amount and name in self.names}
            known = self._counted[id(amounts)] = self._parts.setdefault(frozenset(found.items()), found), amounts
        return known[0]

    def asked(self, options: tuple[Amounts, ...]) -> tuple[Amounts, ...]:
        """Return the part of each option that counts."""
        known = self._asked.get(id(options))
        if known is None:
            found = tuple(self.counted(each) for each in options)
            known = self._asked[id(options)] = self._lists.setdefault(tuple(map(id, found)), found), options
        return known[0]


class Ledger:
    """The accounts of all teams, with the nodes' resources.

    `capacity` are the resources of usable nodes, `free` the part that no job holds; a resource that is not in `free` is
    not bounded by nodes. `decides` are the resources that limit teams without a share of a machine type.
    """

    def __init__(
        self,
        accounts: Mapping[str, TeamAccount],
        capacity: Mapping[Resource, int],
        *,
        decides: Iterable[Resource],
        idle_sharing: bool = False,
    ) -> None:
        self.accounts = dict(sorted(accounts.items()))
        self.free: dict[Resource, int] = dict(capacity)
        self._decides = frozenset(decides)
        owned = [each.owned for each in self.accounts.values()]
        names = {name for each in owned for name in each.nominal} | self._decides
        self.lendable = {name: sum(each.lends.get(name, 0) for each in owned) for name in names}
        total = {name: sum(each.nominal.get(name, 0) for each in owned) for name in names}
        spare = {name: max(0, capacity.get(name, 0) - total[name]) if idle_sharing else 0 for name in names}
        self.pool = {name: self.lendable[name] + spare[name] for name in names}
        self.pool_use = dict.fromkeys(names, 0)
        self._kept_idle = {name: sum(each.private(name) for each in owned if name in each.counted) for name in names}
        """The idle private parts of all teams: free only for their owners."""
        limits: dict[frozenset[Resource], _Limits] = {}
        self._limits: dict[str, _Limits] = {}
        for team, account in self.accounts.items():
            own = account.owned
            limiting = own.counted | self._decides.difference(own.nominal)
            self._limits[team] = limits.setdefault(limiting, _Limits(limiting))
        self._ranks: dict[str, dict[int, tuple[float, float]]] = {}
        """The ranks of each team since its use last changed."""

    def limits(self, team: str) -> frozenset[Resource]:
        """Return the resources that limit this team: those of its quota, and the decisive ones of other types."""
        return self._limits[team].names

    def counted(self, team: str, amounts: Amounts) -> Amounts:
        """Return the part of a request that counts for this team; equal parts are one object."""
        return self._limits[team].counted(amounts)

    def asked(self, team: str, options: tuple[Amounts, ...]) -> tuple[Amounts, ...]:
        """Return the part of each option that counts; requests that are equal for quotas are one object."""
        return self._limits[team].asked(options)

    def take(self, team: str, amounts: Amounts, times: int = 1, *, away: Amounts | None = None) -> None:
        """Count the amounts as used by a job of the team; with negative `times`, as released.

        `away` is the part on nodes that take no jobs: it is not taken from the free amounts.
        """
        account = self.accounts[team]
        self._ranks.pop(team, None)
        for name, amount in self.counted(team, amounts).items():
            before = account.use.get(name, 0)
            account.use[name] = before + amount * times
            private = account.owned.private(name)
            self.pool_use[name] += max(0, account.use[name] - private) - max(0, before - private)
            self._kept_idle[name] += max(0, private - account.use[name]) - max(0, private - before)
        self.hold(amounts, times)
        if away:
            self.hold(away, -times)

    def hold(self, amounts: Amounts, times: int = 1) -> None:
        """Count the amounts as taken from the nodes, without counting them for a team."""
        for name, amount in amounts.items():
            if name in self.free:
                self.free[name] -= amount * times

    def available(self, team: str, name: Resource) -> int:
        """Return how much more the quotas let the team use, regardless of free nodes."""
        account = self.accounts[team]
        owned, lends, use = account.owned, account.owned.lends.get(name, 0), account.use.get(name, 0)
        unused = owned.nominal.get(name, 0) - lends - use  # of the private part; below 0: the use from the pool
        in_pool = self.pool[name] - self.pool_use[name]
        may_borrow = lends + min(unused, 0) + owned.may_borrow.get(name, 0)
        return max(unused, 0) + max(min(in_pool, may_borrow), 0)

    def shortage(self, team: str, amounts: Amounts, *, apart: bool = False) -> dict[Resource, int]:
        """Return the amounts that the team lacks for a request, in quotas or in free nodes; empty if it fits.

        Idle private parts of other teams are not free, even if nodes are broken or used by jobs without a team.
        `apart`: the request is for reserved nodes, so free nodes do not matter.
        """
        short: dict[Resource, int] = {}
        for name, amount in self.counted(team, amounts).items():
            has = self.available(team, name)
            if not apart:
                has = min(has, self._on_nodes(team, name, has))
            if amount > has:
                short[name] = amount - max(has, 0)
        return short

    def lacks_nodes(self, team: str, amounts: Amounts) -> dict[Resource, int]:
        """Return the amounts that a request lacks in free nodes, regardless of quotas."""
        # idle private parts of other teams count as free: Slurm would start the job there
        short: dict[Resource, int] = {}
        counted = self.counted(team, amounts)
        for name, amount in amounts.items():
            # CPUs are needed beside accelerators even if the team does not count them
            free = self.free.get(name, amount) if name in counted or kind_of(name) == CPU else amount
            if amount > free:
                short[name] = amount - max(free, 0)
        return short

    def _on_nodes(self, team: str, name: Resource, unbound: int) -> int:
        """Return how much the nodes have free for the team; `unbound` if they do not bound the resource."""
        if name not in self.free:
            return unbound
        account = self.accounts[team]
        own = max(0, account.owned.private(name) - account.use.get(name, 0))
        return self.free[name] - self._kept_idle[name] + own

    def fits(self, team: str, amounts: Amounts, *, apart: bool = False) -> bool:
        """Return whether the team may use the amounts now."""
        return not self.shortage(team, amounts, apart=apart)

    def is_entitled(self, team: str, amounts: Amounts) -> bool:
        """Return whether the team's own quota covers the amounts."""
        account = self.accounts[team]
        nominal, use = account.owned.nominal, account.use
        return all(use.get(n, 0) + a <= nominal.get(n, 0) for n, a in self.counted(team, amounts).items())

    def over_limit(self, team: str, amounts: Amounts) -> dict[Resource, int]:
        """Return how much of a request is beyond the most that the team may ever use; empty if it can fit."""
        owned = self.accounts[team].owned
        most = {n: owned.nominal.get(n, 0) + owned.may_borrow.get(n, 0) for n in self.counted(team, amounts)}
        return {n: a - most[n] for n, a in self.counted(team, amounts).items() if a > most[n]}

    def rank(self, team: str, more: Amounts | None = None) -> tuple[float, float]:
        """Return the sort key of a team, the least served first; (0, 0) within its quota.

        The key is the largest part of the pool that the team borrows in any resource, divided by the team's weight,
        then undivided. `more` are amounts to count as used, too.
        """
        found, extra = self._ranks.setdefault(team, {}), self.counted(team, more or {})
        if (key := id(extra)) not in found:
            found[key] = self._rank(team, extra)
        return found[key]

    def _rank(self, team: str, extra: Amounts) -> tuple[float, float]:
        """Return the team's rank with these further amounts."""
        account = self.accounts[team]
        worst = 0.0
        for name in account.use.keys() | extra.keys() if extra else account.use:
            beyond = account.use.get(name, 0) + extra.get(name, 0) - account.owned.nominal.get(name, 0)
            if beyond > 0:
                worst = max(worst, beyond / max(self.pool[name], 1))
        if not worst:
            return 0.0, 0.0
        return worst / account.weight if account.weight else _WITHOUT_WEIGHT, worst

    def decisive(self, amounts: Amounts) -> int:
        """Return the number of accelerators, plus the CPUs of machines without accelerators."""
        return sum(amount for name, amount in amounts.items() if name in self._decides)

    def borrows(self, team: str, amounts: Amounts | None = None) -> bool:
        """Return whether the team borrows any resource, or any of these amounts."""
        account = self.accounts[team]
        return any(account.borrowed(name) for name in (account.use if amounts is None else self.counted(team, amounts)))
