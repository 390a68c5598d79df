"""Judge this cluster's settings for quotas: missing ones, and the traps of Slurm's limits.

`lines` is the output of `steward quota doctor`. A BAD line keeps quotas from working at all (`missing`), and names the
line to add to slurm.conf.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from steward.model.accounting import QOS_MARK, Accounting, borrowed_qos, guaranteed_qos
from steward.model.gres import gpus_of
from steward.model.partition import Admission, Partition
from steward.model.text import one_line
from steward.policy.quota.limits import remedy_for, users_apart
from steward.workflows.doctor import DoctorLine, Health, bad, ok, warn

_TOPIC = "quota"
_MARKS, _LISTS = (23, 2), (25, 11)
_ENFORCE = "AccountingStorageEnforce=associations,limits,qos"
_STORAGE = "AccountingStorageType=accounting_storage/slurmdbd"
EXEMPT = 4_000_000_000
"""The advised `min_exempt_priority`: above every priority that Slurm computes."""
_WEIGHTS = re.compile(r"PriorityWeight(?!TRES)[A-Za-z]+")
_BACKFILL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The settings of a cluster.

    `config` is as `scontrol show config` prints it; `gres` is of every node; `teams` have a quota. `partitions` is None
    if not known.
    """

    picture: Accounting
    config: Mapping[str, str]
    gres: Collection[str] = ()
    teams: Collection[str] = field(default_factory=tuple)
    partitions: Collection[Partition] | None = None

    @property
    def gpu_types(self) -> list[str]:
        """Return the types of GPUs that nodes have, sorted."""
        return sorted({gpu.type for each in self.gres for gpu in gpus_of(each)} - {""})

    @property
    def has_gpus(self) -> bool:
        """Return whether a node has GPUs."""
        return any(map(gpus_of, self.gres))


def lines(site: Site) -> list[DoctorLine]:
    """Return all lines; without accounting, only that one."""
    first = [_storage(site)]
    if first[0].health is Health.BAD:
        return first
    judges: tuple[Callable[[Site], DoctorLine], ...] = (
        _reachable, _enforce, _tracked, _priority, _preempt, _marks, _lists, _requeue, _types, _order_of_victims,
    )  # fmt: skip
    found = [*first, *(judge(site) for judge in judges)]
    if site.picture.trouble:  # nothing is known of accounts: say nothing of them
        return found
    if site.teams:
        found.append(_without_quota(site))
    for team in sorted(site.teams):
        found += _team(site, team)
    return found


def _without_quota(site: Site) -> DoctorLine:
    """Return the line about accounts of no team, which should be limited to what no team owns."""
    picture = site.picture
    above = {name for team in site.teams for name in picture.line_of(team)} | {"root"}
    names = [n for n in picture.accounts if n not in above and not set(site.teams) & set(picture.line_of(n))]
    free = [n for n in names if not any(has and has.limits for has in map(picture.of_account, picture.line_of(n)))]
    if not free:
        return ok(_TOPIC, "accounts without a quota may use what no team owns, and their jobs are not evicted")
    text = (
        f"accounts without a quota and without a limit: {', '.join(sorted(free))[:200]}: they may take what teams own"
    )
    return warn(_TOPIC, text, "steward.toml: [quota] limit_others = true; or give them a quota")


def missing(site: Site) -> list[DoctorLine]:
    """Return the lines about settings that keep quotas from working at all."""
    return [line for line in lines(site) if line.health is Health.BAD]


def conf_lines(site: Site) -> list[str]:
    """Return the lines that this cluster's slurm.conf lacks or has with another value."""
    config, version = site.config, site.picture.can.version
    kinds = [f"gres/gpu:{kind}" for kind in site.gpu_types]
    wanted = [
        (_storage(site), _STORAGE),
        (_enforce(site), _ENFORCE),
        (_tracked(site), f"AccountingStorageTRES={','.join([*_others(config), 'gres/gpu', *kinds])}"),
        (_priority(site), "PriorityType=priority/multifactor\nPriorityWeightQOS=1000000"),
        (_requeue(site), "JobRequeue=1"),
    ]
    if version >= _MARKS:
        parameters = _parameters(config)
        wanted += [
            (_preempt(site), "PreemptType=preempt/qos\nPreemptMode=REQUEUE"),
            (_marks(site), f"PreemptParameters={','.join([*parameters, f'min_exempt_priority={EXEMPT}'])}"),
        ]
    return [text for line, text in wanted if line.health is not Health.OK]


def _storage(site: Site) -> DoctorLine:
    value = site.config.get("AccountingStorageType", "")
    if value == "accounting_storage/slurmdbd":
        return ok(_TOPIC, _STORAGE)
    return bad(_TOPIC, f"AccountingStorageType={value or '?'}: no accounts, no limits", f"set up slurmdbd; {_STORAGE}")


def _reachable(site: Site) -> DoctorLine:
    if site.picture.reachable and not site.picture.trouble:
        return ok(_TOPIC, "slurmdbd answers")
    text = site.picture.trouble or "slurmdbd does not answer: limits stay as they are, and none can be changed"
    return bad(_TOPIC, text, "systemctl status slurmdbd, on the machine that AccountingStorageHost names")


def _enforce(site: Site) -> DoctorLine:
    if site.picture.enforces_limits:
        return ok(_TOPIC, f"AccountingStorageEnforce={','.join(sorted(site.picture.enforce))}")
    said = ",".join(sorted(site.picture.enforce)) or "none"
    return bad(_TOPIC, f"AccountingStorageEnforce={said}: Slurm does not enforce quotas", f"slurm.conf: {_ENFORCE}")


def _tracked(site: Site) -> DoctorLine:
    wanted = {"gres/gpu", *(f"gres/gpu:{kind}" for kind in site.gpu_types)} if site.has_gpus else set()
    lacking = sorted(wanted - site.picture.tracked)
    if not lacking:
        return ok(_TOPIC, "AccountingStorageTRES counts every kind of GPU that a node has")
    line = f"AccountingStorageTRES={','.join([*_others(site.config), *sorted(wanted)])}"
    return bad(
        _TOPIC, f"{', '.join(lacking)} is not counted: no limit of it holds", f"slurm.conf: {line}; restart slurmctld"
    )


def _priority(site: Site) -> DoctorLine:
    weight = site.config.get("PriorityWeightQOS", "0")
    if site.config.get("PriorityType", "") == "priority/multifactor" and weight.isdigit() and int(weight) > 0:
        return ok(_TOPIC, f"PriorityWeightQOS={weight}: owners come before borrowers")
    remedy = "slurm.conf: PriorityType=priority/multifactor and PriorityWeightQOS=1000000"
    return warn(_TOPIC, "the priority of a QOS does not count: borrowers may start before owners", remedy)


def _preempt(site: Site) -> DoctorLine:
    can = site.picture.can
    if can.version < _MARKS:
        text = (
            f"Slurm {can.version[0]}.{can.version[1]:02}: the weaker mode. Steward itself reclaims what was lent "
            "(signal, grace, requeue): not while it is down"
        )
        return warn(_TOPIC, text, "Slurm 23.02 and newer do it by themselves; nothing else to do here")
    exempt = site.config.get("PreemptExemptTime", "")
    if can.preempts and re.search(r"[1-9]", exempt):
        text = f"PreemptExemptTime={exempt}: Slurm spares jobs that ran for less, Steward ends them in its place"
        return warn(_TOPIC, text, "slurm.conf: PreemptExemptTime=00:00:00; owners wait quota.patience_s longer with it")
    if can.preempts:
        return ok(_TOPIC, "PreemptType=preempt/qos: Slurm reclaims what was lent, also while Steward is down")
    remedy = "slurm.conf: PreemptType=preempt/qos and PreemptMode=REQUEUE"
    return warn(_TOPIC, "Slurm does not preempt by QOS: only Steward reclaims what was lent", remedy)


def _marks(site: Site) -> DoctorLine:
    can = site.picture.can
    if can.version < _MARKS:
        return ok(_TOPIC, "no marks in this Slurm: nothing in its queue is preempted behind Steward's back")
    if not can.marks:
        remedy = f"slurm.conf: PreemptParameters=min_exempt_priority={EXEMPT}"
        text = "a borrowed job that its team's quota covers by now may still be preempted"
        return warn(_TOPIC, f"min_exempt_priority is not set: {text}", remedy)
    highest = sum(int(v) for k, v in site.config.items() if _WEIGHTS.fullmatch(k) and v.isdigit())
    if highest >= can.exempt_priority:
        text = f"priorities reach {highest}, min_exempt_priority is {can.exempt_priority}: no job could be preempted"
        return bad(
            _TOPIC, text, f"slurm.conf: PreemptParameters=min_exempt_priority={EXEMPT}, or lower PriorityWeight*"
        )
    return ok(_TOPIC, f"min_exempt_priority={can.exempt_priority}, above all priorities that Slurm computes")


def _lists(site: Site) -> DoctorLine:
    if not site.picture.can.qos_lists:
        return ok(_TOPIC, "one QOS a job: Steward moves waiting jobs between the two of their team")
    found = re.search(r"bf_max_job_test=([0-9]+)", site.config.get("SchedulerParameters", ""))
    if found is None or int(found[1]) >= _BACKFILL:
        return ok(_TOPIC, "a job may have both QOS of its team: it takes what is free first")
    text = f"bf_max_job_test={found[1]}: with two QOS a job counts twice, backfill sees half of the queue"
    return warn(_TOPIC, text, f"slurm.conf: SchedulerParameters=...,bf_max_job_test={_BACKFILL}")


def _requeue(site: Site) -> DoctorLine:
    if site.config.get("JobRequeue", "1") == "1":
        return ok(_TOPIC, "JobRequeue=1: an evicted job waits and runs again")
    return warn(_TOPIC, "JobRequeue=0: an evicted job is cancelled", "slurm.conf: JobRequeue=1, or sbatch --requeue")


def _types(site: Site) -> DoctorLine:
    """Return the line about requests that do not name a type of GPU."""
    # A limit is compared with the request: `--gres=gpu:4` passes a limit of gres/gpu:l4 alone.
    kinds = site.gpu_types
    if len(kinds) < 2:
        return ok(_TOPIC, "one type of GPU: a request without a type counts as it should")
    text = f"{', '.join(kinds)}: a request without a type (--gres=gpu:4) passes the limits of each type"
    return warn(
        _TOPIC, text, "a partition for each type, or a job_submit plug-in that adds the type; the sum is limited"
    )


def _order_of_victims(site: Site) -> DoctorLine:
    if site.picture.can.version < _MARKS:
        return ok(_TOPIC, "the team that borrowed most is evicted first; of its jobs the lowest class, then the newest")
    if "youngest_first" in site.config.get("PreemptParameters", "") + site.config.get("SchedulerParameters", ""):
        text = "youngest_first: the newest of all borrowing jobs is evicted first, whichever team borrowed most"
        return ok(_TOPIC, text)
    text = "the team that borrowed most is evicted first; of its jobs the one on the fewest nodes, then the oldest"
    return ok(_TOPIC, f"{text} (PreemptParameters=youngest_first: the newest of all teams' jobs)")


def _team(site: Site, team: str) -> list[DoctorLine]:
    topic, picture, found = f"team {team}", site.picture, list[DoctorLine]()
    if picture.of_account(team) is None:
        return [warn(topic, f"Slurm has no account {team}: its quota waits", "steward quota setup --apply")]
    names = (guaranteed_qos(team), borrowed_qos(team))
    for name in names:
        if (qos := picture.qos.get(name)) is not None and qos.description != QOS_MARK:
            said = one_line(qos.description, 100)
            text = f"QOS {name} is not ours (its description: '{said}'): its limits are not changed"
            found.append(bad(topic, text, f"rename or delete it: sacctmgr delete qos {name}"))
    if users := users_apart(picture, team):
        text = f"{len(users)} of its users have a list of QOS of their own, without those of the team: "
        found.append(warn(topic, text + ",".join(users)[:200], remedy_for(users, team)))
    found += _other_qos(picture, team)
    found += _closed_partitions(site, team)
    strangers = sorted(a.account for a in picture.associations if not a.user and _may_use_qos(a.qos, team, a.account))
    if strangers and not _is_below(picture, strangers, team):
        text = f"accounts that are not of the team may use its QOS: {', '.join(strangers)[:200]}"
        found.append(warn(topic, text, f"sacctmgr modify account where name=... set qos-={','.join(names)}"))
    return found or [ok(topic, "account, QOS and users are as they should be")]


def _other_qos(picture: Accounting, team: str) -> Iterator[DoctorLine]:
    """Yield a line if the team's users may also submit in QOS of the site."""
    has, mine = picture.of_account(team), {guaranteed_qos(team), borrowed_qos(team)}
    if has is not None and mine & has.qos and (others := sorted(has.qos - mine)):
        # In such a QOS only the account's ceiling limits them.
        names = ",".join(others)[:200]
        text = (
            f"its users may choose QOS {names} (--qos): such a job may start on what no team lends, up to the ceiling "
            "of the team, and only Steward takes it back"
        )
        yield warn(f"team {team}", text, f"sacctmgr modify account where name={team} set qos-={names}")


def _closed_partitions(site: Site, team: str) -> Iterator[DoctorLine]:
    """Yield lines about partitions that refuse the team's jobs for their QOS or account.

    A partition that takes only other accounts is reported only if no partition takes the team.
    """
    topic, closed = f"team {team}", list[Partition]()
    if site.partitions is None:
        yield warn(topic, "not known which QOS and accounts the partitions take", "scontrol show partitions")
    for each in sorted(site.partitions or (), key=attrgetter("name")):
        if each.qos is None or each.accounts is None:
            text = f"not known which QOS and accounts partition {each.name} takes"
            yield warn(topic, text, f"scontrol show partition {each.name}: AllowQos, AllowAccounts")
        elif _refuses_account(site.picture, each.accounts, team):
            closed.append(each)
        elif refused := [name for name in _qos_of(site.picture, team) if each.qos.refuses(name)]:
            line = _admitting_words("Qos", each.qos, refused)
            text = f"partition {each.name} refuses QOS {', '.join(refused)}: the team's jobs there do not start"
            yield warn(topic, text, f"slurm.conf: PartitionName={each.name} ... {line}; scontrol reconfigure")
        elif passed := _overruled_limits(each.own_qos, site.picture, team):
            whose = f"partition {each.name} (QOS {each.own_qos})"
            text = f"the limits of {passed} of {whose} count there in the team's place"
            names = ",".join(_qos_of(site.picture, team))
            yield warn(topic, text, f"sacctmgr modify qos where name={names} set flags+=OverPartQOS")
    if closed and len(closed) == len(site.partitions or ()):
        for each in closed:
            line = _admitting_words("Accounts", each.accounts or Admission(), [team])
            text = f"partition {each.name} refuses account {team}, and no other takes it: its jobs do not start"
            yield warn(topic, text, f"slurm.conf: PartitionName={each.name} ... {line}; scontrol reconfigure")


def _overruled_limits(partitions: str, picture: Accounting, team: str) -> str:
    """Return the team's limits that do not count in a partition with this QOS, whose limits come first."""
    there, found = picture.qos.get(partitions), set[str]()
    for name in _qos_of(picture, team):
        ours = picture.qos.get(name)
        if there is not None and (ours is None or "OverPartQOS" not in ours.flags):
            limits = (ours.limits.keys() if ours is not None else ()) or {t for t in there.limits if "gpu" in t}
            found |= there.limits.keys() & limits
    return ", ".join(sorted(found))


def _qos_of(picture: Accounting, team: str) -> list[str]:
    """Return the team's QOS that exist; before its quota is in force, the ones that it may get."""
    names = [guaranteed_qos(team), borrowed_qos(team)]
    return [name for name in names if name in picture.qos] or names


def _refuses_account(picture: Accounting, accounts: Admission, team: str) -> bool:
    """Return whether the partition refuses the team's account."""
    if not accounts.refuses(team):
        return False
    # newer Slurms also take accounts below an allowed one
    above = (name for name in accounts.allow if _is_below(picture, [team], name))
    return next(above, None) is None


def _admitting_words(kind: str, has: Admission, names: Collection[str]) -> str:
    """Return the setting of the partition that lets these names in."""
    if has.allow:
        return f"Allow{kind}={','.join([*sorted(has.allow), *names])}"
    rest = sorted(has.deny - {name.lower() for name in names})
    return f"Deny{kind}={','.join(rest)}" if rest else f"(without Deny{kind})"


def _may_use_qos(qos: Collection[str], team: str, account: str) -> bool:
    """Return whether `account` is not the team's own but may use the team's QOS."""
    return account != team and any(name in (guaranteed_qos(team), borrowed_qos(team)) for name in qos)


def _is_below(picture: Accounting, accounts: Collection[str], team: str) -> bool:
    """Return whether all accounts are sub-accounts of the team."""
    return all(account != team and team in picture.line_of(account) for account in accounts)


def _others(config: Mapping[str, str]) -> list[str]:
    """Return the resources that the site counts besides GPUs and Slurm's own."""
    own = {"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
    words = [word.strip() for word in config.get("AccountingStorageTRES", "").split(",")]
    return [word for word in words if word and word not in own and not word.startswith("gres/gpu")]


def _parameters(config: Mapping[str, str]) -> list[str]:
    """Return the words of PreemptParameters that may stay."""
    words = config.get("PreemptParameters", "").split(",")
    return [w for w in words if w and w != "(null)" and not w.startswith("min_exempt_priority")]
