"""The limits that Slurm enforces for each team: the fields of its two QOS and of its account.

A team has the QOS `g` for jobs that its quota covers, and `b` for jobs that borrow. `g` is always open up to the quota,
so that owners can reclaim their own even while Steward is away; `b` has room only for its running jobs and those
granted in this turn. Together they never exceed the team's ceiling.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steward.model.accounting import Accounting, Tres, borrowed_qos, guaranteed_qos
from steward.model.job import Job, parse_tres
from steward.model.quota import CPU, GPU, MEM, Resource, kind_of, machine_type_of, profile_of
from steward.policy.draft import Draft
from steward.policy.quota.present import Held
from steward.policy.quota.requests import add
from steward.policy.quota.turn import Turn

GUARANTEED_PRIORITY = 1000
"""The priority of every `g`; every `b` has a lower one."""
_BEGAN_BEFORE_S = 2.0
"""Slurm's use, when it was asked, has all jobs that began so much earlier: it shows whole seconds."""
_GRES = "gres/"
_BUILT_IN = frozenset({"cpu", "mem", "node", "billing"})

Caps = Mapping[str, int]


def _no_caps() -> Caps:
    """Return no limits."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedQos:
    """The fields that a QOS should have. `caps` are its limits by TRES; `urgent`: a job waits for higher limits."""

    name: str
    caps: Caps = field(default_factory=_no_caps)
    priority: int
    preempts: frozenset[str] = frozenset()
    preempt_mode: str = ""
    grace_s: int = 0
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTeam:
    """The fields that a team's account should have.

    `default_qos` is empty for an account without a quota, of which Steward sets only the limits.
    """

    account: str
    qos: frozenset[str]
    caps: Caps
    default_qos: str


def wanted_qos(turn: Turn, still: frozenset[str], draft: Draft, picture: Accounting) -> list[WantedQos]:
    """Return the wanted QOS of all teams, each `b` before every `g`; `still` is the result of `teams_still_in_b`."""
    # a `g` names the other teams' `b`, which it may preempt: these must exist before it
    lenders = sorted(turn.quotas)
    borrowers = [team for team in lenders if turn.quotas[team].strategy.borrows or team in still]
    priorities = _priorities(turn, borrowers)
    used = {team: _Use(turn, team) for team in lenders}
    granted = _granted(turn)
    all_borrowed = frozenset(borrowed_qos(team) for team in borrowers)
    found = []
    for team in borrowers:
        more = granted.get(team, {})
        amounts = {name: used[team].borrowed(name) + more.get(name, 0) for name in turn.ledger.limits(team)}
        found.append(
            WantedQos(
                name=borrowed_qos(team),
                caps=_qos_caps(borrowed_qos(team), amounts, turn, team, picture),
                priority=priorities[team],
                preempt_mode="REQUEUE",
                grace_s=int(draft.want.quota.grace_s),
                urgent=bool(more),
            )
        )
    for team in lenders:
        others = all_borrowed - {borrowed_qos(team)}
        more = granted.get(team, {})
        amounts = {name: used[team].open_to_own(name, more.get(name, 0)) for name in turn.ledger.limits(team)}
        found.append(
            WantedQos(
                name=guaranteed_qos(team),
                caps=_qos_caps(guaranteed_qos(team), amounts, turn, team, picture),
                priority=GUARANTEED_PRIORITY,
                preempts=others if picture.can.preempts else frozenset(),
            )
        )
    return found


def _qos_caps(name: str, amounts: Mapping[Resource, int], turn: Turn, team: str, picture: Accounting) -> Caps:
    """Return the limits of a team's QOS that hold its jobs to the amounts."""
    caps, qos = caps_of(turn, team, picture, amounts), picture.qos.get(name)
    jobs = (job for unit in turn.running.get(team, ()) for job in unit.jobs if job.qos == name)
    return as_slurm_counts(caps, jobs, qos.used, picture) if qos is not None else caps


def as_slurm_counts(caps: Caps, jobs: Iterable[Job], used: Tres, picture: Accounting) -> Caps:
    """Return limits for these jobs, lowered by what Slurm counts too little of them: `used` is its count."""
    if not picture.can.miscounts_parts:
        return caps
    # jobs that ran when Slurm was asked, and still do
    since = picture.at - _BEGAN_BEFORE_S
    long = [parse_tres(job.allocated) for job in jobs if job.is_active and (job.started or picture.at) <= since]
    return {
        tres: max(cap - _lacking(tres, long, used), 0) if tres == CPU or tres.startswith(_GRES) else cap
        for tres, cap in caps.items()
    }


def _lacking(tres: str, jobs: Iterable[Mapping[str, int]], used: Tres) -> int:
    """Return how much less Slurm counts in use than these jobs have."""
    return max(0, sum(has.get(tres, 0) for has in jobs) - used.get(tres, 0))


def teams_still_in_b(turn: Turn, draft: Draft, picture: Accounting) -> frozenset[str]:
    """Return the teams that may not borrow any more and have jobs left in `b`."""
    closed = {borrowed_qos(team): team for team, quota in turn.quotas.items() if not quota.strategy.borrows}
    closed = {b: t for b, t in closed.items() if (has := picture.of_account(t)) is not None and b in has.qos}
    if not closed:
        return frozenset()
    # owners preempt running jobs in `b`, and Slurm would refuse waiting jobs of an account without it
    alive = (job.qos.split(",") for job in draft.seen.jobs.values() if not job.is_over)
    return frozenset(closed[name] for names in alive for name in names if name in closed)


def wanted_teams(turn: Turn, still: frozenset[str], picture: Accounting) -> Iterator[WantedTeam]:
    """Yield the account of each team, with the ceiling that holds jobs in the site's own QOS."""
    below = _teams_below(turn, picture)
    for team, quota in sorted(turn.quotas.items()):
        # only `steward quota setup` makes a missing account
        if team in picture.accounts:
            has_b = quota.strategy.borrows or team in still
            yield WantedTeam(
                account=team,
                qos=frozenset({guaranteed_qos(team)} | ({borrowed_qos(team)} if has_b else set())),
                caps=_ceiling(turn, team, below.get(team, ()), picture),
                default_qos=guaranteed_qos(team),
            )


def _ceiling(turn: Turn, team: str, below: Collection[str], picture: Accounting) -> Caps:
    """Return the most that the team may have."""
    names = turn.ledger.limits(team)
    most = dict.fromkeys(names, 0)
    # an account's limits in Slurm count the accounts below it: add the amounts of the teams `below`, and set no limit
    # on a resource that one of these may use without limit
    for each in (team, *below):
        owned = turn.ledger.accounts[each].owned
        for name in names:
            most[name] += owned.nominal.get(name, 0) + owned.may_borrow.get(name, 0)
    unbound = {name for each in below for name in names - turn.ledger.limits(each)}
    caps = caps_of(turn, team, picture, most)
    bound = {tres: cap for tres, cap in caps.items() if unbound.isdisjoint(turn.words[team][tres])}
    has = picture.of_account(team)
    jobs = (job for each in (team, *below) for unit in turn.running.get(each, ()) for job in unit.jobs)
    return as_slurm_counts(bound, jobs, has.used, picture) if has is not None else bound


def _teams_below(turn: Turn, picture: Accounting) -> Mapping[str, list[str]]:
    """Return, for each team, the teams whose accounts are below its account."""
    found: dict[str, list[str]] = {}
    for team in turn.quotas:
        for above in picture.line_of(team):
            if above != team and above in turn.quotas:
                found.setdefault(above, []).append(team)
    return found


def users_apart(picture: Accounting, team: str) -> tuple[str, ...]:
    """Return the users of the team's account who have a list of QOS of their own without the team's QOS."""
    name, has = guaranteed_qos(team), picture.of_account(team)
    # while there is such a user, Slurm refuses to make the team's QOS the account's default; before the account itself
    # has that QOS, there is none to report
    if has is None or name not in has.qos:
        return ()
    return tuple(sorted({a.user for a in picture.users_of(team) if name not in a.qos}))


def users_naming(picture: Accounting, team: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the users of the team's account whose lists of QOS have one of these names."""
    return tuple(sorted({a.user for a in picture.users_of(team) if a.qos & set(names)}))


def users_with_default(picture: Accounting, team: str, names: Collection[str]) -> Mapping[str, str]:
    """Return the users whose own default is one of these QOS, with that QOS; their account cannot lose that QOS."""
    has = picture.of_account(team)
    # while one of these is the account's default, every user shows it, and the users' own defaults are not known
    if has is None or has.default_qos in names:
        return {}
    return {a.user: a.default_qos for a in picture.users_of(team) if a.default_qos in names}


def remedy_for(users: Iterable[str], team: str, sign: str = "+=") -> str:
    """Return the command that adds the team's QOS to the users' lists; with the sign `-=`, that removes the QOS."""
    names = f"{guaranteed_qos(team)},{borrowed_qos(team)}"
    return f"sacctmgr modify user where name={','.join(users)[:200]} account={team} set qos{sign}{names}"


def caps_of(turn: Turn, team: str, picture: Accounting, amounts: Mapping[Resource, int]) -> dict[str, int]:
    """Return the amounts as limits by TRES."""
    found: dict[str, int] = {}
    held = turn.held.get(team) or Held()
    if team not in turn.words:
        turn.words[team] = _words(turn, team)
    # Slurm has no limit of CPUs or memory by machine type: if a team counts them on all of its types, the limit is the
    # sum. A machine type without a node that takes jobs adds only the team's use there: a higher limit would let the
    # team use more on other types.
    for tres, names in turn.words[team].items():
        if tres in _BUILT_IN or tres in picture.tracked:
            found[tres] = sum(
                amounts[name] if machine_type_of(name) in turn.flavors.in_service or ":" in tres
                else sum(part.get(name, 0) for part in held.parts)
                for name in names
            )  # fmt: skip
    return found


def _words(turn: Turn, team: str) -> Mapping[str, list[Resource]]:
    """Return each TRES with the resources that it counts."""
    owned = turn.ledger.accounts[team].owned
    names = sorted(turn.ledger.limits(team))
    found: dict[str, list[Resource]] = {}
    for name in names:
        kind, machine = kind_of(name), machine_type_of(name)
        if not kind.startswith(GPU):
            continue
        found.setdefault("gres/gpu", []).append(name)
        words = turn.flavors.gpu_words(machine)
        if kind != GPU:
            profile = profile_of(kind.removeprefix(f"{GPU}:"))
            words = turn.flavors.mig_words(machine, profile) if profile else frozenset()
        for word in sorted(words):
            found.setdefault(f"gres/gpu:{word}", []).append(name)
    here = turn.flavors.in_service
    own_types = {machine_type_of(name) for name in owned.nominal} & here
    for kind in (CPU, MEM):
        counted = [name for name in names if kind_of(name) == kind]
        if own_types and own_types <= {machine_type_of(name) for name in counted}:
            found[kind] = counted
    return found


class _Use:
    """The amounts that a team uses.

    A limit is never above what Slurm counts in it and what may start: jobs that clean up have nodes, but no part in
    that. Evicted jobs count, except for the limit on borrowing: their amounts are for the job that evicts them, not for
    the next borrower.
    """

    def __init__(self, turn: Turn, team: str) -> None:
        ledger, held = turn.ledger, turn.held.get(team) or Held()
        self._nominal = ledger.accounts[team].owned.nominal
        self._may_borrow = ledger.accounts[team].owned.may_borrow
        self._g, self._b = ledger.counted(team, held.guaranteed), ledger.counted(team, held.borrowed)
        self._other = ledger.counted(team, held.other)
        self._g_cleaning = ledger.counted(team, held.guaranteed_cleaning)
        self._b_cleaning = ledger.counted(team, held.borrowed_cleaning)
        self._leaving: dict[Resource, int] = {}
        leaving = turn.leaving
        for unit in held.borrowers if leaving else ():
            if unit.id in leaving and not unit.is_cleaning:
                add(self._leaving, ledger.counted(team, unit.options[0]))

    def borrowed(self, name: Resource) -> int:
        """Return how much Slurm counts as borrowed by the team, without evicted jobs."""
        return self._b.get(name, 0) - self._b_cleaning.get(name, 0) - self._leaving.get(name, 0)

    def open_to_own(self, name: Resource, granted: int) -> int:
        """Return the limit of `g`: the quota without the use in other QOS, but at least what Slurm counts in `g`."""
        rest = self._nominal.get(name, 0) - self._b.get(name, 0) - self._other.get(name, 0)
        # A QOS' limit replaces the account's. So only the limits of `g` and `b` together keep a team below its ceiling
        # when a covered job and a borrowing one (`granted`) both start before the next turn.
        counted = self._g.get(name, 0) - self._g_cleaning.get(name, 0)
        return max(counted, min(rest, rest + self._may_borrow.get(name, 0) - granted))


def _leaving(turn: Turn, team: str) -> dict[Resource, int]:
    """Return the amounts of the team's running jobs that are evicted."""
    leaving = turn.leaving
    found: dict[Resource, int] = {}
    for unit in turn.running.get(team, ()) if leaving else ():
        if unit.id in leaving:
            add(found, unit.options[0])
    return found


def _granted(turn: Turn) -> dict[str, dict[Resource, int]]:
    """Return the amounts granted to waiting jobs that borrow, by team."""
    found: dict[str, dict[Resource, int]] = {}
    for ruling in turn.rulings.values():
        if ruling.borrowed:
            team = ruling.unit.team
            add(found.setdefault(team, {}), turn.ledger.counted(team, ruling.amounts), ruling.borrowed)
    return found


def _priorities(turn: Turn, borrowers: list[str]) -> dict[str, int]:
    """Return the priority of each `b` by rank: the team that borrowed most is served last, and evicted first."""
    # evicted jobs still count: without them, their team would rank as a small borrower, and Slurm would preempt another
    # team's jobs instead
    ranks = {team: turn.ledger.rank(team, _leaving(turn, team)) for team in borrowers}
    order = sorted((team for team in borrowers if ranks[team] > (0.0, 0.0)), key=lambda t: (ranks[t], t), reverse=True)
    return dict.fromkeys(borrowers, GUARANTEED_PRIORITY - 1) | {team: at for at, team in enumerate(order)}
