"""Limit each account without a quota to the resources that no team owns.

Such limits are needed because jobs of these accounts are never evicted: a team could not get its nodes back from them.
Each account may have its present use, plus the resources that are neither owned by a team nor used by such an account.
A limit that was set by hand stays.
"""

from collections.abc import Iterator, Mapping

from steward.model.accounting import Accounting
from steward.model.action import SetTeam
from steward.model.gres import gpus_of
from steward.model.job import Job, parse_tres
from steward.model.quota import CPU, GPU, Resource, kind_of, machine_type_of, resource
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.quota.closing import closing_teams
from steward.policy.quota.edits import edit_key
from steward.policy.quota.flavors import Flavors
from steward.policy.quota.limits import WantedTeam, as_slurm_counts
from steward.policy.quota.requests import add, holds_nodes
from steward.policy.quota.turn import Turn

RETRY_S = 5.0
_ROOT = "root"
_GRES = "gres/gpu"


def wanted_others(turn: Turn, picture: Accounting, draft: Draft) -> Iterator[WantedTeam]:
    """Yield the wanted limits of accounts without a quota."""
    if not draft.want.quota.limit_others:
        return
    tops = _top_accounts(turn, picture, draft)
    used: dict[str, dict[str, int]] = {}
    counted: dict[str, dict[str, int]] = {}
    running: dict[str, list[Job]] = {}
    for job in draft.seen.jobs.values():
        if job.account in tops and holds_nodes(job):
            running.setdefault(tops[job.account], []).append(job)
            # Slurm's limits do not count jobs that clean up, although these have their nodes still
            for sums in (used, counted) if job.is_active else (used,):
                mine = sums.setdefault(tops[job.account], {})
                for tres, amount in parse_tres(job.allocated or job.requested).items():
                    mine[tres] = mine.get(tres, 0) + amount
    # an account without running jobs gets the whole unowned amount as its limit, so that limits change only for the few
    # accounts that run jobs
    unowned = {tres: n for tres, n in _unowned(turn, draft).items() if tres == CPU or tres in picture.tracked}
    left = {tres: max(0, n - sum(each.get(tres, 0) for each in used.values())) for tres, n in unowned.items()}
    for account in sorted(set(tops.values())):
        has, record = counted.get(account, {}), picture.of_account(account)
        most = {tres: has.get(tres, 0) + left[tres] for tres in unowned} if account in used else unowned
        counts = record.used if record is not None else {}
        caps = as_slurm_counts(most, running.get(account, ()), counts, picture)
        yield WantedTeam(account=account, qos=frozenset(), caps=caps, default_qos="")


def _top_accounts(turn: Turn, picture: Accounting, draft: Draft) -> Mapping[str, str]:
    """Return, for each account without a team, the highest account in its line that is not above a team."""
    above = {name for team in turn.quotas for name in picture.line_of(team)} | {_ROOT}
    closing = closing_teams(picture, draft)
    found = {}
    for account in picture.accounts.keys() - above - turn.teams.keys():
        line = tuple(picture.line_of(account))
        if picture.of_account(account) is not None and closing.isdisjoint(line):
            found[account] = [name for name in line if name not in above][-1]
    return found


def _unowned(turn: Turn, draft: Draft) -> dict[str, int]:
    """Return the amounts that no team owns, by TRES."""
    flavors, total = turn.flavors, dict[str, int]()
    owned: dict[Resource, int] = {}
    for account in turn.ledger.accounts.values():
        add(owned, account.owned.nominal)
    for name, amount in flavors.capacity.items():
        kind, free = kind_of(name), max(0, amount - owned.get(name, 0))
        if kind.startswith(GPU):
            total[_GRES] = total.get(_GRES, 0) + free
            for word in flavors.gpu_words(machine_type_of(name)) if kind == GPU else ():
                total[f"{_GRES}:{word}"] = total.get(f"{_GRES}:{word}", 0) + free
    for node in flavors.without_type():
        for each in gpus_of(draft.seen.nodes[node].gres):
            for word in (_GRES, f"{_GRES}:{each.type}"):
                total[word] = total.get(word, 0) + each.amount
    has_gpus = any(map(flavors.has_gpus, flavors.present)) or bool(flavors.without_type())
    # Slurm's limit is on the CPUs of all types together: where no CPUs are owned as such, that of accelerators will do
    by_cpus = (kind for kind in flavors.present if not flavors.has_gpus(kind))
    if has_gpus and not any(owned.get(resource(kind, CPU)) for kind in by_cpus):
        return total
    cpus = sum(_unowned_cpus(kind, owned, flavors) for kind in flavors.present)
    return {**(total if has_gpus else {}), CPU: cpus + flavors.cpus_without_type()}


def _unowned_cpus(kind: str, owned: Mapping[Resource, int], flavors: Flavors) -> int:
    """Return the CPUs of a machine type that no team owns; those of one with accelerators belong to these in parts."""
    cpu = resource(kind, CPU)
    cpus = flavors.capacity.get(cpu, 0)
    if not flavors.has_gpus(kind):
        return max(0, cpus - owned.get(cpu, 0))
    of_kind = ((n, has) for n, has in flavors.capacity.items() if machine_type_of(n) == kind and has)
    parts = [max(0, has - owned.get(n, 0)) / has for n, has in of_kind if kind_of(n).startswith(GPU)]
    return int(cpus * max(parts, default=1.0))


def is_limited(account: str, draft: Draft) -> bool:
    """Return whether the account has a limit of ours."""
    begin = f"account {account}/cap:"
    return any(key.startswith(begin) and wrote.foreign is None for key, wrote in draft.quota_writes.items())


def limited_above(account: str, draft: Draft) -> str:
    """Return the account, or else the nearest one above it, that has a limit of ours; empty if there is none."""
    picture = draft.seen.accounting
    line = picture.line_of(account) if picture is not None else ()
    return next((name for name in line if is_limited(name, draft)), "")


def release_others(limited: frozenset[str], picture: Accounting, draft: Draft) -> bool:
    """Remove our limits from accounts without a quota that should have none; return whether some are left."""
    teams = {quota.team for quota in draft.quotas.values()} | limited
    found: dict[str, list[str]] = {}
    for key, wrote in list(draft.quota_writes.items()):
        owner, _, tres = key.partition("/cap:")
        account = owner.removeprefix("account ")
        if not tres or account == owner or account in teams:
            continue
        has = picture.of_account(account)
        if has is None or tres not in has.limits or wrote.foreign is not None:
            del draft.quota_writes[key]
        else:
            found.setdefault(account, []).append(tres)
    for account, names in found.items() if picture.reachable else ():
        why = Why(rule="quota.others", text=f"account {account} without a quota has no limit any more")
        caps = tuple((tres, None) for tres in sorted(names))
        draft.wish(SetTeam(key=edit_key(f"account {account}", "free"), why=why, account=account, caps=caps), RETRY_S)
    return bool(found)
