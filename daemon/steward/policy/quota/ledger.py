"""Who owns, uses, lends and borrows what: made anew from Slurm at every look, changed by what one plan decides.

Of team i and resource r: N nominal, L of it lendable, B may be borrowed beyond N. The private part N - L never leaves.
The pool P is what all lend together, with what no team owns where that is shared. A team's use counts against the pool
only beyond its private part, so nobody borrows from anybody in particular.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.quota import CPU, Resource, kind_of
from steward.policy.quota.fill_in import Owned
from steward.policy.quota.requests import Amounts

_WITHOUT_WEIGHT = float("inf")


@dataclass(slots=True, kw_only=True)
class TeamAccount:
    """The account of a team. `use` has all kinds of resources; only those count that `limits` names."""

    team: str
    owned: Owned
    weight: int = 0
    use: dict[Resource, int] = field(default_factory=dict)

    def borrowed(self, name: Resource) -> int:
        return max(0, self.use.get(name, 0) - self.owned.nominal.get(name, 0))


class _Limits:
    """The part of each request that counts, worked out once for all teams that the same resources limit."""

    def __init__(self, names: frozenset[Resource]) -> None:
        self.names = names
        self._counted: dict[int, tuple[Amounts, Amounts]] = {}
        self._asked: dict[int, tuple[tuple[Amounts, ...], tuple[Amounts, ...]]] = {}
        """By the id of the request, which is kept so that its id stays its own."""
        self._parts: dict[frozenset[tuple[Resource, int]], Amounts] = {}
        self._lists: dict[tuple[int, ...], tuple[Amounts, ...]] = {}

    def counted(self, amounts: Amounts) -> Amounts:
        known = self._counted.get(id(amounts))
        if known is None:
            found = {name: amount for name, amount in amounts.items() if amount and name in self.names}
            known = self._counted[id(amounts)] = self._parts.setdefault(frozenset(found.items()), found), amounts
        return known[0]

    def asked(self, options: tuple[Amounts, ...]) -> tuple[Amounts, ...]:
        known = self._asked.get(id(options))
        if known is None:
            found = tuple(self.counted(each) for each in options)
            known = self._asked[id(options)] = self._lists.setdefault(tuple(map(id, found)), found), options
        return known[0]


class Ledger:
    """`capacity` is what usable nodes have, `free` what of it no job holds; a resource that it lacks is not bounded by
    nodes. `decides` says whether a resource of a machine type is the one that limits teams that have no share of it."""

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
        """The idle part that teams own and do not lend: free, but for nobody else."""
        limits: dict[frozenset[Resource], _Limits] = {}
        self._limits: dict[str, _Limits] = {}
        for team, account in self.accounts.items():
            own = account.owned
            limiting = own.counted | self._decides.difference(own.nominal)
            self._limits[team] = limits.setdefault(limiting, _Limits(limiting))
        self._ranks: dict[str, dict[int, tuple[float, float]]] = {}
        """Since the team's use changed."""

    def limits(self, team: str) -> frozenset[Resource]:
        """The resources that limit this team: what it counts, and of machine types that it owns nothing of the one that
        decides."""
        return self._limits[team].names

    def counted(self, team: str, amounts: Amounts) -> Amounts:
        """The part of a request that counts towards this team's limits. Equal parts are the same object."""
        return self._limits[team].counted(amounts)

    def asked(self, team: str, options: tuple[Amounts, ...]) -> tuple[Amounts, ...]:
        """The part that counts, of each option. Requests that are the same object here differ in nothing that quotas
        ask about."""
        return self._limits[team].asked(options)

    def take(self, team: str, amounts: Amounts, times: int = 1, *, away: Amounts | None = None) -> None:
        """A job of the team has (or is given) so much; negative `times`: it gives it back. `away` of it is on nodes
        that take no jobs."""
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
        """Nodes are taken that much; no team's share is."""
        for name, amount in amounts.items():
            if name in self.free:
                self.free[name] -= amount * times

    def available(self, team: str, name: Resource) -> int:
        """How much more the quotas let the team have, whatever the nodes say."""
        account = self.accounts[team]
        owned, lends, use = account.owned, account.owned.lends.get(name, 0), account.use.get(name, 0)
        unused = owned.nominal.get(name, 0) - lends - use  # of its private part; below 0: so much is from the pool
        in_pool = self.pool[name] - self.pool_use[name]
        may_borrow = lends + min(unused, 0) + owned.may_borrow.get(name, 0)
        return max(unused, 0) + max(min(in_pool, may_borrow), 0)

    def shortage(self, team: str, amounts: Amounts, *, apart: bool = False) -> dict[Resource, int]:
        """The amounts that the team lacks for a request, in quotas or in free nodes; empty where it fits. Where nodes
        are broken, or jobs of no team have them, the idle part of teams that do not lend is still theirs. `apart`: it
        has other nodes than these."""
        short: dict[Resource, int] = {}
        for name, amount in self.counted(team, amounts).items():
            has = self.available(team, name)
            if not apart:
                has = min(has, self._on_nodes(team, name, has))
            if amount > has:
                short[name] = amount - max(has, 0)
        return short

    def lacks_nodes(self, team: str, amounts: Amounts) -> dict[Resource, int]:
        """The amounts that a request lacks in free nodes, whatever the quotas say: an owner needs no more than that.
        CPUs are needed beside accelerators, whether the team counts them or not."""
        short: dict[Resource, int] = {}
        counted = self.counted(team, amounts)
        for name, amount in amounts.items():
            if name in counted:
                free = self._on_nodes(team, name, amount)
            elif kind_of(name) == CPU:
                free = self.free.get(name, amount)
            else:
                continue
            if amount > free:
                short[name] = amount - max(free, 0)
        return short

    def _on_nodes(self, team: str, name: Resource, unbound: int) -> int:
        """How much the nodes have free for the team; `unbound` where they do not bound the resource."""
        if name not in self.free:
            return unbound
        account = self.accounts[team]
        own = max(0, account.owned.private(name) - account.use.get(name, 0))
        return self.free[name] - self._kept_idle[name] + own

    def fits(self, team: str, amounts: Amounts, *, apart: bool = False) -> bool:
        return not self.shortage(team, amounts, apart=apart)

    def is_entitled(self, team: str, amounts: Amounts) -> bool:
        """The team's own quota covers it."""
        account = self.accounts[team]
        nominal, use = account.owned.nominal, account.use
        return all(use.get(n, 0) + a <= nominal.get(n, 0) for n, a in self.counted(team, amounts).items())

    def over_limit(self, team: str, amounts: Amounts) -> dict[Resource, int]:
        """How much of a request is beyond all that the team may ever have; empty: it fits some time."""
        owned = self.accounts[team].owned
        most = {n: owned.nominal.get(n, 0) + owned.may_borrow.get(n, 0) for n in self.counted(team, amounts)}
        return {n: a - most[n] for n, a in self.counted(team, amounts).items() if a > most[n]}

    def rank(self, team: str, more: Amounts | None = None) -> tuple[float, float]:
        """By which teams are sorted, the least served first: what it borrowed, as the largest part of what all lend, by
        its weight, then without it. (0, 0) within its quota. `more`: after it was given that, too."""
        found, extra = self._ranks.setdefault(team, {}), self.counted(team, more or {})
        if (key := id(extra)) not in found:
            found[key] = self._rank(team, extra)
        return found[key]

    def _rank(self, team: str, extra: Amounts) -> tuple[float, float]:
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
        """So many accelerators, or CPUs of machines without any."""
        return sum(amount for name, amount in amounts.items() if name in self._decides)

    def borrows(self, team: str, amounts: Amounts | None = None) -> bool:
        """The team borrows something; of these amounts, where some are given."""
        account = self.accounts[team]
        return any(account.borrowed(name) for name in (account.use if amounts is None else self.counted(team, amounts)))
