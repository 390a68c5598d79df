"""Teams that share machines, and what they run and want: for the pure core of quotas."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from steward.model.accounting import Account as AccountRecord
from steward.model.accounting import Accounting, Association, Capabilities, Qos
from steward.model.action import Caps, DropQos, DropTeam, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam
from steward.model.agent_action import Action
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.machine_types import MachineType
from steward.model.node import NodeBase
from steward.model.quota import CPU, GPU, MEM, ComputeQuota, Resource, Share, Strategy, resource
from steward.policy.quota.decide import Decider, Rules
from steward.policy.quota.fill_in import owned
from steward.policy.quota.ledger import Ledger, TeamAccount
from steward.policy.quota.pick import Room
from steward.policy.quota.requests import Unit
from tests.builders.picture import T0, Picture, a_cluster
from tests.builders.want import but

G6 = MachineType(name="ml.g6.12xlarge", cpus=48, memory_mb=192 * 1024, gpus=4, gres="gpu:l4:4")
P5 = MachineType(name="ml.p5.48xlarge", cpus=192, memory_mb=2048 * 1024, gpus=8, gres="gpu:h100:8")
C5 = MachineType(name="ml.c5.2xlarge", cpus=8, memory_mb=16 * 1024)
TYPES = {each.name: each for each in (G6, P5, C5)}
POOL = resource(G6.name, GPU)
LISTS = Capabilities(version=(24, 11), marks=True, qos_lists=True, preempts=True, exempt_priority=1_000_000)
MARKS = Capabilities(version=(23, 2), marks=True, preempts=True, exempt_priority=1_000_000)
WEAK = Capabilities(version=(22, 5))


def a_quota(team: str, *shares: Share, gpus: int = 0, **fields: Any) -> ComputeQuota:
    """`gpus`: of the G6 machines."""
    given = shares or (Share(machine_type=G6.name, accelerators=gpus),)
    return ComputeQuota(id=f"q-{team}", name=team, team=team, shares=given, **fields)


def needs(gpus: int = 0, cpus: int = 0, gib: int = 0, machine: MachineType = G6) -> dict[Resource, int]:
    found = {GPU: gpus, CPU: cpus, MEM: gib * 1024}
    return {resource(machine.name, kind): amount for kind, amount in found.items() if amount}


def a_unit(id: int, team: str, gpus: int = 1, *, qos: str = "", running: bool = False, **fields: Any) -> Unit:
    state = JobState.RUNNING if running else JobState.PENDING
    qos = qos or (f"stw-{team}-b" if running else f"stw-{team}-g")
    job = Job(id=JobId(id), name="train", state=state, user_id=1000, qos=qos, node_count=1, account=team)
    default: dict[str, Any] = {"options": (needs(gpus),), "since": float(id)}
    return Unit(id=job.id, jobs=(job,), team=team, **{**default, **fields})


class Site:
    """Machines and teams; `decide` is one turn."""

    def __init__(
        self,
        quotas: Iterable[ComputeQuota],
        capacity: Mapping[Resource, int],
        *,
        count_filled: bool = False,
        idle_sharing: bool = False,
    ) -> None:
        self.quotas = {quota.team: quota for quota in quotas}
        self.capacity, self.count_filled, self.idle_sharing = capacity, count_filled, idle_sharing

    def ledger(self, running: Iterable[Unit]) -> Ledger:
        accounts = {
            team: TeamAccount(team=team, owned=owned(quota, TYPES, count_filled=self.count_filled), weight=quota.weight)
            for team, quota in self.quotas.items()
        }
        decides = [resource(G6.name, GPU), resource(P5.name, GPU), resource(C5.name, CPU)]
        ledger = Ledger(accounts, self.capacity, decides=decides, idle_sharing=self.idle_sharing)
        for unit in running:
            ledger.take(unit.team, unit.options[0])
        return ledger

    def decide(self, running: Iterable[Unit], waiting: Iterable[Unit], **rules: Any) -> Decider:
        of: dict[str, list[Unit]] = {}
        running = list(running)
        for unit in running:
            of.setdefault(unit.team, []).append(unit)
        room = Room(self.ledger(running), of)
        given = {"in_team": {team: quota.preempt for team, quota in self.quotas.items()}, **rules}
        found = Decider(room, Rules(**given))
        found.decide(waiting)
        return found


def gpu_site(capacity: int, **teams: tuple[int, Strategy] | int) -> Site:
    """Teams that own so many GPUs of one kind; each lends and borrows without bound unless said otherwise."""
    quotas = []
    for team, given in teams.items():
        gpus, strategy = given if isinstance(given, tuple) else (given, Strategy.LEND_AND_BORROW)
        unbound = (Share(machine_type=G6.name, accelerators=1000),)
        quotas.append(a_quota(team, gpus=gpus, strategy=strategy, borrow_absolute=unbound, weight=10))
    return Site(quotas, {POOL: capacity})


def a_picture(*quotas: ComputeQuota, machines: int = 2, can: Capabilities = LISTS) -> Picture:
    """`machines` of G6 that are shared by these teams, whose accounts Slurm has; nothing is set up yet."""
    site = a_cluster(machines)
    fields: dict[str, Any] = {
        "gres": G6.gres,
        "cpus": G6.cpus,
        "memory_mb": G6.memory_mb,
        "features": frozenset({G6.name}),
    }
    nodes = {name: replace(node, **fields) for name, node in site.seen.nodes.items()}
    want = replace(site.want, capacity=but(site.want.capacity, types={**site.want.capacity.types, **TYPES}))
    memory = replace(site.memory, quotas={quota.id: quota for quota in quotas})
    seen = replace(site.seen, nodes=nodes, accounting=an_accounting(*(quota.team for quota in quotas), can=can))
    return replace(site, seen=seen, want=want, memory=memory)


def an_accounting(*teams: str, can: Capabilities = LISTS) -> Accounting:
    return Accounting(
        at=T0,
        enforce=frozenset({"associations", "limits", "qos"}),
        tracked=frozenset({"gres/gpu", "gres/gpu:l4", "gres/gpu:h100"}),
        can=can,
        accounts={team: AccountRecord(name=team) for team in teams},
        associations=tuple(Association(account=team, parent="root") for team in teams),
        qos={"normal": Qos(name="normal")},
    )


def tres(gpus: int = 0, cpus: int = 0, gib: int = 0, kind: str = "l4") -> str:
    """As Slurm writes what a job asks for."""
    words = [f"cpu={cpus or gpus}", f"mem={gib or gpus}G", "node=1", "billing=1"]
    return ",".join(words + ([f"gres/gpu={gpus}", f"gres/gpu:{kind}={gpus}"] if gpus else []))


def written(picture: Picture, actions: Iterable[Action]) -> Picture:
    """The picture after Slurm's accounting and queue took these actions."""
    accounting = picture.seen.accounting
    assert accounting is not None
    accounts = dict(accounting.accounts)
    qos, teams, jobs = dict(accounting.qos), list(accounting.associations), dict(picture.seen.jobs)
    for action in actions:
        match action:
            case SetQos():
                qos[action.qos] = _set_qos(qos.get(action.qos, Qos(name=action.qos)), action)
            case DropQos():
                qos.pop(action.qos, None)
            case DropTeam():
                teams = [each for each in teams if each.account != action.account]
                accounts.pop(action.account, None)
            case SetTeam():
                teams = [_set_team(each, action) if each.account == action.account else each for each in teams]
            case MoveJob():
                jobs[action.job] = replace(jobs[action.job], qos=",".join(action.qos))
            case MarkJob():
                jobs[action.job] = replace(jobs[action.job], priority=action.priority or 1)
            case SetNodeCount():
                jobs[action.job] = replace(jobs[action.job], node_count=action.most, most_nodes=action.most)
            case _:
                pass
    after = replace(accounting, qos=qos, associations=tuple(teams), accounts=accounts, at=picture.now)
    return picture.see(accounting=after, jobs=jobs)


def _set_qos(has: Qos, action: SetQos) -> Qos:
    return replace(
        has,
        limits=_limits(has.limits, action.caps),
        priority=has.priority if action.priority is None else action.priority,
        preempts=has.preempts if action.preempts is None else action.preempts,
        preempt_mode=action.preempt_mode or has.preempt_mode,
        grace_s=has.grace_s if action.grace_s is None else action.grace_s,
    )


def _set_team(has: Association, action: SetTeam) -> Association:
    default = has.default_qos if action.default_qos is None else action.default_qos
    names = (has.qos | action.add | ({action.keep} if action.keep else set())) - action.drop
    return replace(has, qos=names, default_qos=default, limits=_limits(has.limits, action.caps))


def _limits(has: Mapping[str, int], caps: Caps) -> dict[str, int]:
    found = {**has, **dict(caps)}
    return {name: limit for name, limit in found.items() if limit is not None}


# Jobs of teams in a picture: those that run with their quota's or borrowed resources, and those that wait.


UNBOUND = (Share(machine_type=G6.name, accelerators=100),)


def own(team: str, gpus: int, **fields: Any) -> ComputeQuota:
    """It lends, and borrows without bound."""
    return replace(a_quota(team, gpus=gpus, borrow_absolute=UNBOUND, weight=10), **fields)


def teams(*quotas: ComputeQuota, can: Capabilities = LISTS, machines: int = 2) -> Picture:
    """On machines of four GPUs each: n1, n2 ..."""
    return a_picture(*quotas, can=can, machines=machines)


def runs(picture: Picture, id: int, team: str, gpus: int, end: str = "g", on: str = "n1", **fields: Any) -> Picture:
    """`end` of its QOS: g is its quota's, b borrowed."""
    size = tres(gpus)
    given = {"qos": f"stw-{team}-{end}", "account": team, "requested": size, "allocated": size, **fields}
    return picture.job(id, on=(on,), **given).node(on, base=NodeBase.MIXED)


def waits(picture: Picture, id: int, team: str, gpus: int, **fields: Any) -> Picture:
    given: dict[str, Any] = {"qos": f"stw-{team}-g", "reason": "None", "submitted": picture.now, "node_count": 1}
    given |= {"account": team, "requested": tres(gpus), **fields}
    return picture.job(id, on=(), state=JobState.PENDING, **given).change_job(id, started=None)
