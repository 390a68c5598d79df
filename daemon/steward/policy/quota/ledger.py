"""Who owns, uses, lends and borrows what: made anew from Slurm at every look, changed by what one plan decides.

Of team i and resource r: N nominal, L of it lendable, B may be borrowed beyond N. The private part N - L never leaves.
The pool P is what all lend together, with what no team owns where that is shared. A team's use counts against the pool
only beyond its private part, so nobody borrows from anybody in particular.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.quota import Resource
from steward.policy.quota.fill_in import Owned
from steward.policy.quota.requests import Amounts

_WITHOUT_WEIGHT = float("inf")


@dataclass(slots=True, kw_only=True)
class Account:
    """One team. `use` is of all kinds; only those that `limits` says count."""

    team: str
    owned: Owned
    weight: int = 0
    use: dict[Resource, int] = field(default_factory=dict)

    def borrowed(self, name: Resource) -> int:
        return max(0, self.use.get(name, 0) - self.owned.nominal.get(name, 0))


class Ledger:
    """`capacity` is what usable nodes have, `free` what of it no job holds; a resource that it lacks is not bounded by
    nodes. `decides` says whether a resource of a machine type is the one that limits teams that have no share of it."""

    def __init__(
        self,
        accounts: Mapping[str, Account],
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
        self._counted: dict[tuple[str, int], tuple[Amounts, Amounts]] = {}
        self._limits: dict[str, frozenset[Resource]] = {}

    def limits(self, team: str) -> frozenset[Resource]:
        """The resources that limit this team: what it counts, and of machine types that it owns nothing of the one that
        decides."""
        if team not in self._limits:
            owned = self.accounts[team].owned
            self._limits[team] = owned.counted | (self._decides - owned.nominal.keys())
        return self._limits[team]

    def counted(self, team: str, amounts: Amounts) -> Amounts:
        """The part of a request that counts towards this team's limits."""
        key = team, id(amounts)
        if key not in self._counted:
            limits = self.limits(team)
            found = {name: amount for name, amount in amounts.items() if amount and name in limits}
            self._counted[key] = found, amounts  # kept, so that its id stays its own
        return self._counted[key][0]

    def take(self, team: str, amounts: Amounts, times: int = 1, *, away: Amounts | None = None) -> None:
        """A job of the team has (or is given) so much; negative `times`: it gives it back. `away` of it is on nodes
        that take no jobs."""
        account = self.accounts[team]
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
        lends, private, use = account.owned.lends.get(name, 0), account.owned.private(name), account.use.get(name, 0)
        of_pool = max(0, use - private)
        may_borrow = account.owned.may_borrow.get(name, 0)
        from_pool = min(self.pool[name] - self.pool_use[name], lends - of_pool + may_borrow)
        return max(0, private - use) + max(0, from_pool)

    def shortage(self, team: str, amounts: Amounts) -> dict[Resource, int]:
        """What the team lacks for a request, of quotas or of free nodes; empty: it fits. Where nodes are broken, or
        jobs of no team have them, the idle part of those who do not lend is still theirs."""
        short: dict[Resource, int] = {}
        account = self.accounts[team]
        for name, amount in self.counted(team, amounts).items():
            has = self.available(team, name)
            if name in self.free:
                own = max(0, account.owned.private(name) - account.use.get(name, 0))
                has = min(has, self.free[name] - self._kept_idle[name] + own)
            if amount > has:
                short[name] = amount - max(has, 0)
        return short

    def has_nodes(self, amounts: Amounts) -> bool:
        """So much is free on nodes, whatever the quotas say."""
        return all(amount <= self.free[name] for name, amount in amounts.items() if name in self.free)

    def fits(self, team: str, amounts: Amounts) -> bool:
        return not self.shortage(team, amounts)

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
        account = self.accounts[team]
        extra = self.counted(team, more) if more is not None else {}
        worst = 0.0
        for name in account.use.keys() | extra.keys() if extra else account.use:
            beyond = account.use.get(name, 0) + extra.get(name, 0) - account.owned.nominal.get(name, 0)
            if beyond > 0:
                worst = max(worst, beyond / max(self.pool[name], 1))
        if not worst:
            return 0.0, 0.0
        return worst / account.weight if account.weight else _WITHOUT_WEIGHT, worst

    def borrows(self, team: str, names: Iterable[Resource]) -> bool:
        """Some of these resources."""
        return any(self.accounts[team].borrowed(name) for name in names)
