"""What the ranks of a step do, worked out of looks at their processes and GPUs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from steward.agent.sight import MOST_RANKS, SLOW_S, JobSight
from steward.model.ids import NodeName
from steward.model.job_sight import Doing, RankGroup
from tests.fakes.ranks import (
    ASKS_OFTEN,
    BLOCKED,
    BRAKED,
    CAPPED,
    COMPUTES,
    DEAD,
    DEBUGGED,
    DOWNLOADS,
    LOOK_S,
    READS,
    SAVES,
    SPINS,
    STARVES,
    STOPPED,
    TRAINS,
    WAITS,
    Act,
    FakeStep,
    look_at,
    steps_on,
)

WORKED_S = 300.0


def then(act: Act, *, before: Act = TRAINS, at: float = WORKED_S) -> Callable[[float], Act]:
    return lambda now: before if now < at else act


def a_step(*acts: Callable[[float], Act], has_gpu: bool = True) -> FakeStep:
    (step,) = steps_on(("n1",), len(acts), lambda number: acts[number], has_gpu=has_gpu)
    return step


def after(step: FakeStep, until: float, *, since: float = 0.0) -> Sequence[RankGroup]:
    """What is told after looks from `since` to `until`."""
    at, told = since, step.sight.told(since)
    while at <= until:
        told = step.look(at)
        at += LOOK_S
    return told[0].groups if told else ()


def doings(groups: Sequence[RankGroup]) -> dict[Doing, int]:
    return {group.doing: group.ranks for group in groups}


@pytest.mark.parametrize(
    ("act", "doing"),
    [
        (SPINS, Doing.SPINS),
        (WAITS, Doing.WAITS),
        (BLOCKED, Doing.BLOCKED),
        (DEAD, Doing.GONE),
        (STOPPED, Doing.STOPPED),
    ],
)
def test_a_rank_that_worked_and_does_no_work_is_told_with_its_process(act: Act, doing: Doing) -> None:
    groups = after(a_step(then(act), then(act)), WORKED_S + 90.0)
    assert doings(groups) == {doing: 2}
    (group,) = groups
    assert 60.0 <= group.for_s <= 90.0
    assert (group.rank, group.pid) == (0, 0 if act is DEAD else 1000)


@pytest.mark.parametrize(
    ("act", "doing"),
    [
        (TRAINS, Doing.WORKS),
        (SAVES, Doing.WORKS),
        (READS, Doing.WORKS),
        (DEBUGGED, Doing.WORKS),
        (COMPUTES, Doing.BUSY),
    ],
)
def test_what_may_be_work_is_told_as_such(act: Act, doing: Doing) -> None:
    assert doings(after(a_step(then(act), then(act)), WORKED_S + 600.0)) == {doing: 2}


def test_beside_a_rank_that_may_work_the_others_are_not_told_apart() -> None:
    """How many work at a moment changes all the time; only a stopped one counts beside them."""
    assert doings(after(a_step(then(SPINS), then(SAVES), then(WAITS)), WORKED_S + 90.0)) == {Doing.WORKS: 3}
    assert doings(after(a_step(then(SPINS), then(COMPUTES)), WORKED_S + 90.0)) == {Doing.WORKS: 2}
    assert doings(after(a_step(then(SPINS), then(COMPUTES)), WORKED_S + 600.0)) == {Doing.BUSY: 2}
    beside = after(a_step(then(STOPPED), then(COMPUTES), then(COMPUTES), has_gpu=False), WORKED_S + 90.0)
    assert doings(beside) == {Doing.BUSY: 2, Doing.STOPPED: 1}


def test_the_odd_rank_is_told_apart_from_those_that_spin() -> None:
    groups = after(a_step(then(SPINS), then(WAITS), then(SPINS)), WORKED_S + 90.0)
    assert doings(groups) == {Doing.SPINS: 2, Doing.WAITS: 1}
    odd = next(group for group in groups if group.doing is Doing.WAITS)
    assert (odd.rank, odd.pid, odd.waits_in) == (1, 1001, "futex_wait_queue")


def test_of_a_rank_that_gets_no_processor_it_is_not_told_that_it_waits() -> None:
    """Another user's threads may have all processors of the node."""
    assert doings(after(a_step(then(STARVES), then(STARVES), has_gpu=False), WORKED_S + 900.0)) == {Doing.UNKNOWN: 2}


def test_a_short_pause_is_no_news() -> None:
    """A user's processes that stop and go on all the time have nothing told of them."""

    def flaps(now: float) -> Act:
        return TRAINS if now % 40.0 < 20.0 else WAITS

    step = a_step(flaps, flaps)
    told = [tuple(doings(after(step, at, since=at))) for at in range(0, 1800, int(LOOK_S))]
    changes = [doing for doing, before in zip(told[1:], told, strict=False) if doing != before]
    assert (len(changes), changes[-1]) <= (2, (Doing.WORKS,))


def test_a_rank_that_never_worked_has_not_begun() -> None:
    assert doings(after(a_step(lambda now: WAITS, lambda now: WAITS), 3600.0)) == {Doing.UNKNOWN: 2}


def test_an_agent_that_began_anew_knows_by_its_cpu_time_that_a_rank_had_worked() -> None:
    step = a_step(then(WAITS), then(WAITS))
    after(step, WORKED_S)
    step.sight = JobSight(NodeName("n1"), waits_in=lambda pid: "")
    assert doings(after(step, WORKED_S + 15.0, since=WORKED_S)) == {Doing.UNKNOWN: 2}
    assert doings(after(step, WORKED_S + 90.0, since=WORKED_S + 30.0)) == {Doing.WAITS: 2}


def test_the_longest_pause_that_ended_by_itself_is_learnt() -> None:
    def pauses(now: float) -> Act:
        return WAITS if 600.0 <= now < 720.0 or now >= 1200.0 else TRAINS

    (group,) = after(a_step(pauses, pauses), 1300.0)
    assert 90.0 <= group.usual_s <= 135.0


def test_where_nvml_does_not_answer_nothing_is_known_of_a_rank_that_uses_no_cpu() -> None:
    step = a_step(then(WAITS), then(WAITS))
    after(step, WORKED_S)
    for at in (WORKED_S + 15.0, WORKED_S + 30.0, WORKED_S + 90.0):
        acts = {rank.pid: rank.run_to(at) for rank in step.ranks}
        step.sight.note(replace(look_at(step, acts, at), gpus=None))
    assert doings(step.sight.told(WORKED_S + 90.0)[0].groups) == {Doing.UNKNOWN: 2}


def test_a_gpu_that_works_for_a_process_that_is_not_known_makes_waiting_ranks_unknown() -> None:
    """A container that another service started does the work of a script that waits for it."""
    step = a_step(then(WAITS, before=COMPUTES), has_gpu=False)
    after(step, WORKED_S)
    for at in (WORKED_S + 15.0, WORKED_S + 90.0):
        acts = {rank.pid: rank.run_to(at) for rank in step.ranks}
        look = look_at(step, acts, at)
        stray = a_step(lambda now: TRAINS)
        gpus = look_at(stray, {1000: TRAINS}, at).gpus or ()
        step.sight.note(replace(look, gpus=tuple(replace(gpu, processes=()) for gpu in gpus)))
    assert doings(step.sight.told(WORKED_S + 90.0)[0].groups) == {Doing.UNKNOWN: 1}


def test_ranks_that_wait_are_told_beside_others_whose_network_is_busy() -> None:
    step = a_step(then(WAITS, before=COMPUTES), then(WAITS, before=COMPUTES), has_gpu=False)
    step.network = 5e6
    (group,) = after(step, WORKED_S + 120.0)
    assert (group.doing, group.ranks) == (Doing.WAITS, 2)
    assert 60.0 <= group.for_s <= 90.0


@pytest.mark.parametrize("act", [DOWNLOADS, ASKS_OFTEN])
def test_a_rank_that_only_downloads_works(act: Act) -> None:
    step = a_step(then(act, before=COMPUTES), then(WAITS, before=COMPUTES), has_gpu=False)
    step.network = 5e6
    told = [doings(after(step, at, since=at)) for at in range(0, 3600, int(LOOK_S))]
    assert all(set(seen) <= {Doing.WORKS, Doing.BUSY, Doing.UNKNOWN} for seen in told)
    assert told[-1] == {Doing.WORKS: 2}


@pytest.mark.parametrize("of", ["fabric", "hidden sockets"])
def test_ranks_of_which_it_cannot_be_told_what_they_carry_are_not_said_to_wait(of: str) -> None:
    step = a_step(then(WAITS, before=COMPUTES), then(WAITS, before=COMPUTES), has_gpu=False)
    step.network, step.hides_sockets, step.fabric = 5e6, of == "hidden sockets", 5e6 * (of == "fabric")
    assert doings(after(step, WORKED_S + 900.0)) == {Doing.UNKNOWN: 2}


def test_sockets_that_cannot_be_seen_are_not_looked_for_for_ever_while_the_network_is_at_rest() -> None:
    step = a_step(then(WAITS, before=COMPUTES), then(WAITS, before=COMPUTES), has_gpu=False)
    step.hides_sockets = True
    assert doings(after(step, WORKED_S + 900.0)) == {Doing.WAITS: 2}
    assert 0 < step.asked <= 20


def test_bursts_of_others_do_not_begin_a_wait_anew() -> None:
    """The machine is quiet when the ranks begin to wait, and busy for a minute now and then."""
    step = a_step(then(WAITS, before=COMPUTES), then(WAITS, before=COMPUTES), has_gpu=False)
    at = 0.0
    while at < WORKED_S + 1800.0:
        at += LOOK_S
        bursts = at > WORKED_S + 120.0 and at % 600.0 < 60.0
        moved = step.network * at
        step.look(at)
        step.network = moved / at + (5e6 if bursts else 0.0)
    (group,) = step.sight.told(at)[0].groups
    assert (group.doing, group.ranks) == (Doing.WAITS, 2)
    assert group.for_s >= 1700.0


@pytest.mark.parametrize(("act", "is_well"), [(TRAINS, True), (COMPUTES, True), (READS, True), (SPINS, False)])
def test_sockets_are_looked_at_only_where_no_rank_works(act: Act, is_well: bool) -> None:
    step = a_step(then(act), then(act), then(WAITS))
    step.network = 5e9
    after(step, WORKED_S + 900.0)
    assert (step.asked == 0) is is_well


def test_a_gpu_that_was_never_seen_to_work_is_not_said_to_spin() -> None:
    """Small kernels draw as little as one that waits."""
    assert doings(after(a_step(lambda now: SPINS, lambda now: SPINS), 1800.0)) == {Doing.WORKS: 2}


def test_ranks_without_end_are_not_followed() -> None:
    (step,) = steps_on(("n1",), MOST_RANKS + 500, lambda number: then(WAITS, at=45.0), has_gpu=False)
    (group,) = after(step, 120.0)
    assert (group.doing, group.ranks) == (Doing.UNKNOWN, MOST_RANKS + 1)


def test_a_rank_whose_gpu_is_slowed_down_by_hardware_for_ten_minutes_is_told_beside_the_others() -> None:
    step = a_step(then(BRAKED, before=TRAINS), lambda now: CAPPED, lambda now: TRAINS)
    after(step, WORKED_S + SLOW_S - 2 * LOOK_S)
    assert step.sight.told(WORKED_S + SLOW_S - 2 * LOOK_S)[0].slow == ()
    after(step, WORKED_S + SLOW_S + 2 * LOOK_S, since=WORKED_S + SLOW_S - LOOK_S)
    (slow,) = step.sight.told(WORKED_S + SLOW_S + 2 * LOOK_S)[0].slow
    assert (slow.rank, slow.gpu, slow.why, slow.mhz, slow.others_mhz) == (0, "GPU-0", "too hot", 1050, 1700)


def test_hardware_that_slows_a_gpu_down_now_and_then_or_while_it_is_idle_is_no_slow_rank() -> None:
    def now_and_then(now: float) -> Act:
        return BRAKED if now % 60.0 < 20.0 else TRAINS

    def idle(now: float) -> Act:
        return replace(WAITS, reasons=0x40)

    step = a_step(now_and_then, idle, lambda now: TRAINS)
    after(step, 3000.0)
    assert step.sight.told(3000.0)[0].slow == ()


def test_what_a_rank_did_while_nobody_looked_is_not_known() -> None:
    step = a_step(then(WAITS, before=COMPUTES), then(WAITS, before=COMPUTES), has_gpu=False)
    after(step, WORKED_S + 90.0)
    late = WORKED_S + 90.0 + 1200.0
    after(step, late, since=late)
    groups = after(step, late + 60.0, since=late + LOOK_S)
    assert doings(groups) == {Doing.WAITS: 2}
    assert groups[0].for_s <= 60.0
