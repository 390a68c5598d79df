"""Whatever befalls an elastic run, its orders are sound, and in the end it is as large as it may be or over."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steward.model.agent_action import ResizeRun
from steward.model.elastic import ElasticRun, ElasticSpec, RunPhase
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.policy.elastic.table import RUN_TABLE, RunFact, deadline
from steward.policy.facts.run_rules import rules_of
from tests.builders.picture import n
from tests.fakes.elastic_world import QUICK, RUN, ElasticWorld

BLOWS = st.lists(
    st.tuples(
        st.sampled_from(["warn", "die", "revive", "other", "other ends", "deaf", "hears", "refuse", "accept", "quiet"]),
        st.integers(0, 7),
        st.integers(1, 25),
    ),
    max_size=12,
)


def blow(world: ElasticWorld, what: str, which: int) -> None:
    replicas = [job for job in world.replicas() if job.is_active]
    others = [id for id, job in world.jobs().items() if id >= 100 and not job.comment and not job.is_over]
    match what:
        case "warn" if replicas:
            world.warn(replicas[which % len(replicas)].id)
        case "die" if free := [f"n{i}" for i in range(3, world.nodes + 1)]:
            world.die(n(free[which % len(free)]))
        case "revive" if world.dead:
            world.revive(sorted(world.dead)[0])
        case "other":
            world.queue(1 + which % 3)
        case "other ends" if others:
            world.end(others[which % len(others)])
        case "deaf" | "hears":
            world.deaf = what == "deaf"
        case "refuse" | "accept":
            world.refuses = what == "refuse"
        case _:
            pass


def check(world: ElasticWorld, spec: ElasticSpec, before: int) -> None:
    """What holds of every plan."""
    again = world.picture.plan()
    for action in again.actions:
        if not isinstance(action, ResizeRun):
            continue
        assert len(action.members) in spec.sizes
        assert world.jobs()[RUN].nodes <= action.members
        assert not world.dead & action.members
        assert action.members <= world.word.joined | world.word.members
        assert action.generation > max(before, world.word.generation)
        assert action.why.text


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blows=BLOWS, spec=st.sampled_from(["5", "6:2", "3,6", "8"]))
def test_every_order_is_sound_and_the_end_is_the_best_that_there_is(
    blows: list[tuple[str, int, int]], spec: str
) -> None:
    world = ElasticWorld(spec=spec)
    parsed = ElasticSpec.parse(spec, 2)
    for what, which, seconds in blows:
        blow(world, what, which)
        for _ in range(seconds):
            check(world, parsed, 0)
            world.step()
    calm(world)
    for _ in range(250):
        world.step()
    assert world.size == parsed.fitting(world.nodes)
    assert world.run.phase in (RunPhase.RUNNING, RunPhase.BACKOFF)
    assert [order.generation for order in world.ordered] == sorted({order.generation for order in world.ordered})


def calm(world: ElasticWorld) -> None:
    """Nothing is wrong any more, and nobody else wants anything."""
    world.deaf = world.refuses = False
    for name in sorted(world.dead):
        world.revive(name)
    for id, job in world.jobs().items():
        if id >= 100 and not job.comment:
            world.end(id)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blows=BLOWS)
def test_after_the_end_of_its_base_nothing_is_left_of_it(blows: list[tuple[str, int, int]]) -> None:
    world = ElasticWorld()
    for what, which, seconds in blows:
        blow(world, what, which)
        world.go(seconds)
    world.go(1)
    world.picture = world.picture.change_job(7, state=JobState.CANCELLED, ended=world.now)
    world.go(80)
    assert world.replicas() == []
    assert not world.run.is_open


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(every=st.integers(3, 30))
def test_flapping_capacity_costs_a_bounded_number_of_growths(every: int) -> None:
    world = ElasticWorld()
    for _ in range(300 // every):
        for job in [job for job in world.replicas() if job.is_active][:1]:
            world.warn(job.id)
        world.go(every)
    growths = [one for one in world.run.events if one.after > one.before > 0]
    assert len(growths) <= 300 / QUICK.snooze_s / 2


@pytest.mark.parametrize("every", [12, 20, 30])
def test_capacity_that_comes_and_goes_is_worth_more_than_none(every: int) -> None:
    """A replica has to leave so often, for five minutes; saving and starting take three seconds each time."""
    world = ElasticWorld()
    began, fixed = world.now, world.base
    for _ in range(300 // every):
        for job in [job for job in world.replicas() if job.is_active][:1]:
            world.warn(job.id)
        world.go(every)
    assert world.run.changes > 4, "it did change its size"
    assert (world.word.consumed or 0) > 1.2 * fixed * (world.now - began), "samples of its base alone, and a fifth more"


def test_each_phase_but_the_last_ends_by_a_fact_and_knows_its_deadline() -> None:
    rules = rules_of("5", 2, QUICK)
    assert rules is not None
    for phase in RunPhase:
        assert bool(RUN_TABLE.facts_of(phase)) is (phase is not RunPhase.ENDED)
        run = ElasticRun(id=JobId(1), uid=0, spec="5", base=2, phase=phase, entered=100.0)
        timed = phase not in (RunPhase.WAITING, RunPhase.RUNNING, RunPhase.ENDED)
        assert (deadline(run, rules) is not None) is timed


@pytest.mark.parametrize("phase", [phase for phase in RunPhase if phase not in (RunPhase.ENDED, RunPhase.WAITING)])
def test_a_loss_a_requeue_and_the_end_are_seen_in_every_phase(phase: RunPhase) -> None:
    found: dict[Any, Any] = {fact: to for (at, fact), to in RUN_TABLE.rows.items() if at is phase}
    assert found[RunFact.OVER] is RunPhase.ENDED
    assert found[RunFact.QUEUED] is RunPhase.WAITING
    assert phase is RunPhase.FAULTED or found[RunFact.LOST] is RunPhase.FAULTED
