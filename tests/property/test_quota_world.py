"""Quotas over whole plans and a Slurm that takes them: limits, marks and preemption, crashes and breakdowns."""

from dataclasses import replace
from math import log2

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.accounting import Capabilities
from steward.model.action import SetQos
from steward.model.quota import ComputeQuota, Share, Strategy
from steward.policy.plan import Plans
from tests.builders.quota import G6, LISTS, MARKS, WEAK, a_quota
from tests.property.quota_world import SlurmWorld, limits_between_writes, size

TEAMS = ("t1", "t2", "t3")
MACHINES = 4

Event = tuple[str, int, int]


@st.composite
def worlds(draw: st.DrawFn) -> SlurmWorld:
    """Three teams own at most what there is."""
    left, quotas = MACHINES * 4, list[ComputeQuota]()
    for team in TEAMS:
        gpus = draw(st.integers(0, min(8, left)))
        left -= gpus
        unbound = (Share(machine_type=G6.name, accelerators=100),)
        strategy = draw(st.sampled_from([*Strategy, Strategy.LEND_AND_BORROW, Strategy.LEND_AND_BORROW]))
        absolute = unbound if strategy.borrows and draw(st.booleans()) else ()
        quotas.append(a_quota(team, gpus=gpus, strategy=strategy, borrow_absolute=absolute, weight=10))
    return SlurmWorld.of(quotas, machines=MACHINES, can=draw(st.sampled_from([LISTS, MARKS, WEAK])))


EVENT = st.tuples(st.sampled_from(["submit", "submit", "end", "break", "mend"]), st.integers(0, 2), st.integers(1, 4))
EVENTS = st.lists(EVENT, min_size=10, max_size=30)
BUSY = settings(max_examples=50, deadline=None)


def happens(world: SlurmWorld, event: Event) -> None:
    what, which, gpus = event
    if what == "submit":
        world.submit(TEAMS[which], gpus)
    elif what == "end":
        running = sorted(job.id for job in world.running())
        if running:
            world.end(running[(which * 5 + gpus) % len(running)])
    elif what == "break":
        world.picture = world.picture.drained("n4", "somebody's")
    else:
        node = world.picture.seen.nodes["n4"]  # type: ignore[index]
        world.picture = world.picture.node("n4", flags=node.flags - {"DRAIN"}, reason=None)


def borrowed_over(world: SlurmWorld, limits: dict[str, int]) -> int:
    """What may be newly borrowed under these limits."""
    return sum(max(0, limits.get(f"stw-{team}-b", 0) - world.use(f"stw-{team}-b")) for team in TEAMS)


@BUSY
@given(worlds(), EVENTS)
def test_no_write_lends_more_than_is_free(world: SlurmWorld, events: list[Event]) -> None:
    for event in events:
        happens(world, event)
        plan = world.picture.plan()
        for limits in limits_between_writes(world, plan.actions):
            assert borrowed_over(world, dict(limits)) <= max(0, world.free)
        world.turn()


ODD_WORDS = ("later", "in parts", "hold", "release", "elsewhere")
ODD = st.tuples(st.sampled_from(ODD_WORDS), st.integers(0, 2), st.integers(1, 4))


def happens_to_jobs(world: SlurmWorld, event: Event) -> None:
    """What makes a job another one for quotas, besides its start and its end."""
    what, which, gpus = event
    waiting = sorted(job.id for job in world.waiting())
    if what == "later":
        id = world.submit(TEAMS[which], gpus)
        world.picture = world.picture.change_job(id, eligible=world.picture.now + gpus, reason="BeginTime")
    elif what == "in parts":
        first, second = (world.submit(TEAMS[(which + part) % 3], gpus) for part in (0, gpus % 2))
        world.picture = world.picture.change_job(first, het_job_id=first).change_job(second, het_job_id=first)
    elif waiting:
        job = world.jobs[waiting[(which * 5 + gpus) % len(waiting)]]
        changes = {"hold": {"reason": "JobHeldUser"}, "release": {"reason": ""}, "elsewhere": {"account": TEAMS[which]}}
        world.picture = world.picture.change_job(job.id, **changes[what])


@BUSY
@given(worlds(), st.lists(st.one_of(EVENT, ODD), min_size=10, max_size=30))
def test_what_is_kept_of_jobs_from_turn_to_turn_changes_no_plan(world: SlurmWorld, events: list[Event]) -> None:
    plans = Plans()
    for event in events:
        happens_to_jobs(world, event) if event[0] in ODD_WORDS else happens(world, event)
        at = world.picture
        assert plans(replace(at.seen, at=at.now), at.want, at.memory, at.now) == at.plan()
        world.turn()


@BUSY
@given(worlds(), EVENTS)
def test_one_plan_changes_a_limit_once(world: SlurmWorld, events: list[Event]) -> None:
    for event in events:
        happens(world, event)
        found = [(a.qos, name) for a in world.turn() if isinstance(a, SetQos) for name, _ in a.caps]
        assert len(found) == len(set(found))


@BUSY
@given(worlds(), EVENTS)
def test_a_world_that_is_left_alone_comes_to_rest_and_nothing_more_is_written(
    world: SlurmWorld, events: list[Event]
) -> None:
    for event in events:
        happens(world, event)
        world.turn()
    world.rest()
    assert world.turn() == []


@BUSY
@given(worlds(), EVENTS)
def test_who_is_covered_by_his_quota_runs_within_a_grace_and_some_rounds(
    world: SlurmWorld, events: list[Event]
) -> None:
    """Where all nodes work; a job of one GPU is in nobody's way."""
    for event in events:
        if event[0] != "break":
            happens(world, event)
            world.turn()
    world.rest()
    for job in world.waiting():
        quota = world.picture.memory.quotas[f"q-{job.account}"]
        nominal = quota.shares[0].accelerators or 0
        assert world.use_of(job.account) + size(job) > nominal, f"{job.id} of {job.account} is covered and waits"


@BUSY
@given(worlds(), EVENTS, st.lists(st.integers(0, 6), min_size=30, max_size=30))
def test_a_head_that_dies_anywhere_takes_no_job_twice_for_one_demand(
    world: SlurmWorld, events: list[Event], deaths: list[int]
) -> None:
    for event, death in zip(events, deaths, strict=False):
        happens(world, event)
        world.turn(dies_after=death)
    world.rest()
    for memory in world.picture.memory.quota_jobs.values():
        demands = [(each.to_job, each.restart) for each in memory.evictions]
        assert len(demands) == len(set(demands))
    assert world.turn() == []


@BUSY
@given(st.integers(3, 8), st.sampled_from([LISTS, MARKS, WEAK]), EVENTS)
def test_what_a_team_keeps_to_itself_is_used_by_nobody_else(kept: int, can: Capabilities, events: list[Event]) -> None:
    """Also while a node is broken. The other two lend all of theirs and borrow without bound."""
    unbound = (Share(machine_type=G6.name, accelerators=100),)
    closed = a_quota("t1", gpus=kept, strategy=Strategy.DONT_LEND)
    others = [a_quota(team, gpus=4, borrow_absolute=unbound) for team in ("t2", "t3")]
    world = SlurmWorld.of([closed, *others], machines=MACHINES, can=can)
    for event in events:
        happens(world, event)
        world.turn()
        began = world.picture.now - 1.0
        started = [job for job in world.running() if job.started == began and job.qos.endswith("-b")]
        assert not started or world.free >= max(0, kept - world.use_of("t1"))


def test_two_teams_that_lend_and_take_back_do_not_play_ping_pong() -> None:
    """An owner's short jobs come again and again for half an hour: the borrower's comes back less and less often."""
    for can in (LISTS, WEAK):
        lender, borrower = a_quota("t1", gpus=4), a_quota("t2", gpus=4, borrow_percent=100)
        world = SlurmWorld.of([lender, borrower], machines=2, can=can)
        own, lent = world.submit("t2", 4), world.submit("t2", 4)
        began = world.picture.now
        while world.picture.now < began + 1800.0:
            mine = world.submit("t1", 4)
            while not world.jobs[mine].is_active:
                world.turn()
                world.picture = world.picture.after(4.0)
            world.end(mine)
            for _ in range(3):
                world.turn()
        assert world.jobs[own].is_active
        assert 2 <= len(world.evicted[lent]) <= 2 + log2(1800 / 60)
