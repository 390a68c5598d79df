"""What must hold of every turn of quotas, and a world in which jobs come, run, are evicted and end by its rulings."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.quota import PreemptTeamTasks, Reclaimed, Resource, Strategy
from steward.policy.quota.decide import Decider, UnitStanding
from steward.policy.quota.ledger import Ledger
from steward.policy.quota.requests import Unit
from tests.builders.quota import POOL, Site, a_unit, gpu_site


@dataclass(slots=True, kw_only=True)
class QuotaWorld:
    """Jobs that run and wait; `turn` lets start whom it rules so, and ends those that it evicts."""

    site: Site
    now: float = 0.0
    running: dict[JobId, Unit] = field(default_factory=dict)
    waiting: dict[JobId, Unit] = field(default_factory=dict)
    evicted: dict[JobId, list[float]] = field(default_factory=dict)
    next_id: int = 1
    rebalance: bool = False

    def submit(self, team: str, gpus: int, weight: int = -1) -> JobId:
        unit = a_unit(self.next_id, team, gpus, weight=weight, since=self.now)
        self.waiting[unit.id] = unit
        self.next_id += 1
        return unit.id

    def end(self, id: JobId) -> None:
        self.running.pop(id, None)

    def turn(self) -> Decider:
        """Checks every rule that one turn must keep, then lets it happen."""
        last = max((at for times in self.evicted.values() for at in times), default=-1000.0)
        before = self.now - 30.0 if self.rebalance and self.now - last > 30 else None
        found = self.site.decide(self.running.values(), self.waiting.values(), rebalance_before=before)
        check_turn(self, found)
        for each in found.yielding:
            unit = self.running.pop(each.unit.id)
            self.evicted.setdefault(unit.id, []).append(self.now)
            job = replace(unit.jobs[0], state=JobState.PENDING, qos=f"stw-{unit.team}-g")
            self.waiting[unit.id] = replace(unit, jobs=(job,))
        for ruling in found.rulings.values():
            if ruling.may_run and not ruling.hopeless:
                self._start(ruling.unit, ruling.standing)
        self.now += 1.0
        return found

    def _start(self, unit: Unit, standing: UnitStanding) -> None:
        del self.waiting[unit.id]
        end = "g" if standing is UnitStanding.OWN else "b"
        job = replace(unit.jobs[0], state=JobState.RUNNING, qos=f"stw-{unit.team}-{end}")
        self.running[unit.id] = replace(unit, jobs=(job,), since=self.now)


def check_turn(world: QuotaWorld, found: Decider) -> None:
    """Invariants 1 to 8, by what runs after the turn."""
    gone = {each.unit.id for each in found.yielding}
    assert len(gone) == len(found.yielding), "a job is evicted at most once a turn"
    assert gone <= world.running.keys()
    starts = [ruling.unit for ruling in found.rulings.values() if ruling.may_run and not ruling.hopeless]
    stays = [unit for unit in world.running.values() if unit.id not in gone]
    after = world.site.ledger([*stays, *starts])
    _check_ledger(after, world.site, lends=any(ruling.borrowed for ruling in found.rulings.values()))
    assert found.rulings.keys() == world.waiting.keys(), "every waiting job is ruled on"
    _check_entitled(world, found, stays)
    _check_victims(world, found, stays, starts)


def _check_ledger(after: Ledger, site: Site, *, lends: bool) -> None:
    """Owners may have what is free, also where others borrowed all that is lent; then nothing more is lent."""
    assert after.pool_use[POOL] <= after.pool[POOL] or not lends
    borrowed = sum(account.borrowed(POOL) for account in after.accounts.values())
    lent = 0
    for team, account in after.accounts.items():
        owned, use = account.owned, account.use.get(POOL, 0)
        most = owned.nominal[POOL] + owned.may_borrow.get(POOL, 0)
        assert use <= most, f"{team} has {use} of {most}"
        lent += min(owned.lends[POOL], max(0, owned.nominal[POOL] - use))
    spare = after.pool[POOL] - sum(account.owned.lends[POOL] for account in after.accounts.values())
    assert borrowed <= lent + spare or not lends
    assert after.free[POOL] >= 0


def _check_entitled(world: QuotaWorld, found: Decider, stays: Iterable[Unit]) -> None:
    """Whom its quota covers when all is done that was ruled would have been let in."""
    starts = [ruling.unit for ruling in found.rulings.values() if ruling.may_run]
    after = world.site.ledger([*stays, *starts])
    for ruling in found.rulings.values():
        if not ruling.may_run and ruling.unit.team not in found._rules.strict:
            assert not after.is_entitled(ruling.unit.team, ruling.unit.options[0]), f"{ruling.unit.id} is entitled"


def _check_victims(world: QuotaWorld, found: Decider, stays: list[Unit], starts: list[Unit]) -> None:
    before = world.site.ledger(world.running.values())
    for each in found.yielding:
        name: Resource = POOL
        victim = each.unit
        if each.cause is Reclaimed.IN_TEAM:
            assert victim.team == each.to.team
            assert victim.weight < each.to.weight
            continue
        assert victim.team != each.to.team
        assert before.accounts[victim.team].borrowed(name) > 0, "only who borrowed gives back"
        assert name in each.short
        assert world.site.quotas[victim.team].strategy is not Strategy.DONT_LEND
    for each in found.yielding:
        if each.cause is Reclaimed.RECLAIM:
            again = world.site.ledger([*stays, *starts, each.unit])
            assert again.free[POOL] < again._kept_idle[POOL], f"{each.unit.id} need not have gone"


def a_story_of_the_livelock() -> QuotaWorld:
    """Three teams: the first pushes its own low job out, borrows by it, is evened out, and its low job reclaims."""
    site = gpu_site(12, t1=4, t2=4, t3=4)
    for team in site.quotas:
        site.quotas[team] = replace(site.quotas[team], preempt=PreemptTeamTasks.LOWER_PRIORITY)
    world = QuotaWorld(site=site, rebalance=True)
    world.submit("t1", 3, weight=1)
    world.submit("t3", 5, weight=1)
    world.turn()
    world.submit("t1", 5, weight=90)
    world.submit("t3", 4, weight=50)
    world.submit("t2", 1, weight=1)
    return world
