"""Teams that share machines, and what they run and want: for the pure core of quotas."""

from collections.abc import Iterable, Mapping
from typing import Any

from steward.model.desired import MachineType
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.quota import CPU, GPU, MEM, ComputeQuota, Resource, Share, Strategy, resource
from steward.policy.quota.decide import Decider, Rules
from steward.policy.quota.fill_in import owned
from steward.policy.quota.ledger import Account, Ledger
from steward.policy.quota.pick import Room
from steward.policy.quota.requests import Unit

G6 = MachineType(name="ml.g6.12xlarge", cpus=48, memory_mb=192 * 1024, gpus=4, gres="gpu:l4:4")
P5 = MachineType(name="ml.p5.48xlarge", cpus=192, memory_mb=2048 * 1024, gpus=8, gres="gpu:h100:8")
C5 = MachineType(name="ml.c5.2xlarge", cpus=8, memory_mb=16 * 1024)
TYPES = {each.name: each for each in (G6, P5, C5)}
POOL = resource(G6.name, GPU)


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
            team: Account(team=team, owned=owned(quota, TYPES, count_filled=self.count_filled), weight=quota.weight)
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
        room = Room(self.ledger(running), of, guaranteed=lambda unit: unit.qos == (f"stw-{unit.team}-g",))
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
