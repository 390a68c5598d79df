"""Quotas over random histories of teams and jobs: nobody has more than was agreed, and no job is evicted in vain."""

from hypothesis import given
from hypothesis import strategies as st

from steward.model.quota import Reclaimed, Strategy
from steward.policy.quota.decide import UnitStanding
from tests.builders.quota import POOL, Site, a_quota, a_unit, gpu_site
from tests.property.quota_law import QuotaWorld, a_story_of_the_livelock

TEAMS = ("t1", "t2", "t3", "t4")


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Up to four teams; machines for what they own together, and sometimes more."""
    quotas = [
        a_quota(
            team,
            gpus=draw(st.integers(0, 6)),
            strategy=draw(st.sampled_from(list(Strategy))),
            borrow_percent=draw(st.sampled_from([0, 50, 100, 500])),
            weight=draw(st.sampled_from([0, 1, 10, 100])),
        )
        for team in TEAMS[: draw(st.integers(2, 4))]
    ]
    owned = sum(share.accelerators or 0 for quota in quotas for share in quota.shares)
    spare = draw(st.integers(0, 3))
    return Site(quotas, {POOL: owned + spare}, idle_sharing=draw(st.booleans()))


EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 6), st.sampled_from([-1, 10, 90]), st.booleans()), max_size=40
)


def live(site: Site, events: list[tuple[int, int, int, bool]], *, rebalance: bool = False) -> QuotaWorld:
    """A job of some team comes, or one that runs ends; a turn after each."""
    world = QuotaWorld(site=site, rebalance=rebalance)
    for which, gpus, weight, comes in events:
        if comes or not world.running:
            world.submit(list(site.quotas)[which % len(site.quotas)], gpus, weight)
        else:
            ids = sorted(world.running)
            world.end(ids[(which * 7 + gpus) % len(ids)])
        world.turn()
    return world


@given(sites(), EVENTS)
def test_every_turn_keeps_what_was_agreed(site: Site, events: list[tuple[int, int, int, bool]]) -> None:
    live(site, events)


@given(sites(), EVENTS)
def test_also_while_shares_are_evened_out(site: Site, events: list[tuple[int, int, int, bool]]) -> None:
    live(site, events, rebalance=True)


@given(sites(), EVENTS)
def test_a_world_that_is_left_alone_comes_to_rest(site: Site, events: list[tuple[int, int, int, bool]]) -> None:
    world = live(site, events)
    for _ in range(4):
        world.turn()
    found = world.turn()
    assert found.yielding == []
    assert not any(ruling.may_run for ruling in found.rulings.values())


@given(sites(), EVENTS)
def test_the_order_of_what_is_read_does_not_matter(site: Site, events: list[tuple[int, int, int, bool]]) -> None:
    world = live(site, events)
    running, waiting = list(world.running.values()), list(world.waiting.values())
    one, other = site.decide(running, waiting), site.decide(running[::-1], waiting[::-1])
    assert {id: each.standing for id, each in one.rulings.items()} == {i: e.standing for i, e in other.rulings.items()}
    assert {each.unit.id for each in one.yielding} == {each.unit.id for each in other.yielding}


@given(st.integers(1, 8), st.integers(1, 8), st.lists(st.integers(1, 4), max_size=12))
def test_who_does_not_lend_never_waits_for_his_own(mine: int, others: int, asked: list[int]) -> None:
    site = gpu_site(mine + others, closed=(mine, Strategy.DONT_LEND), open=others)
    world = QuotaWorld(site=site)
    for gpus in asked:
        world.submit("open", gpus)
        world.turn()
    world.submit("closed", mine)
    assert world.turn().yielding == []


@given(st.integers(1, 3), st.integers(2, 6))
def test_idle_machines_are_shared_by_weight_to_within_a_job(light: int, times: int) -> None:
    quotas = [
        a_quota("owner", gpus=24, strategy=Strategy.LEND, weight=1),
        *(
            a_quota(team, gpus=1, borrow_percent=10_000, weight=weight)
            for team, weight in (("one", light), ("many", light * times))
        ),
    ]
    world = QuotaWorld(site=Site(quotas, {POOL: 26}))
    for _ in range(30):
        world.submit("one", 1)
        world.submit("many", 1)
    world.turn()
    ledger = world.site.ledger(world.running.values())
    one, many = (ledger.accounts[team].borrowed(POOL) for team in ("one", "many"))
    assert one + many == 24
    assert abs(many - one * times) <= times


def test_the_livelock_of_three_rules_ends() -> None:
    world = a_story_of_the_livelock()
    for _ in range(40):
        world.turn()
    evictions = sum(len(times) for times in world.evicted.values())
    for _ in range(60):
        world.turn()
    assert sum(len(times) for times in world.evicted.values()) - evictions <= 2


def test_who_takes_back_takes_the_newest_of_whom_borrowed_most() -> None:
    site = gpu_site(12, a=4, b=4, c=4)
    running = [a_unit(id, "a", 1, running=True) for id in range(1, 7)]
    running += [a_unit(id, "b", 1, running=True) for id in range(11, 17)]
    running[0] = a_unit(1, "a", 1, running=True, since=99.0)
    found = site.decide([*running, a_unit(20, "b", 0, running=True)], [a_unit(30, "c", 1)])
    assert [(each.unit.id, each.cause) for each in found.yielding] == [(16, Reclaimed.RECLAIM)]
    assert found.rulings[found.yielding[0].to.id].standing is UnitStanding.OWN
