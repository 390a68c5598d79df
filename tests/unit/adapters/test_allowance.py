"""How fast one user may speak at the agent's socket, and how often what he says is written down."""

import asyncio

from steward.adapters.entrance import Allowance
from steward.agent.tasks import Debounced
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S


def test_a_user_may_say_some_lines_at_once_and_then_at_a_pace() -> None:
    clock = FakeClock()
    allowance = Allowance(per_s=10.0, burst=3, now=clock.now)
    waits = [round(allowance.wait_s(1000), 6) for _ in range(5)]
    assert waits == [0.0, 0.0, 0.0, 0.1, 0.2]


def test_one_users_haste_makes_nobody_else_wait() -> None:
    allowance = Allowance(per_s=10.0, burst=3, now=FakeClock().now)
    for _ in range(100):
        allowance.wait_s(1000)
    assert allowance.wait_s(1001) == 0.0


def test_who_rested_may_say_as_many_at_once_again() -> None:
    clock = FakeClock()
    allowance = Allowance(per_s=10.0, burst=3, now=clock.now)
    for _ in range(3):
        allowance.wait_s(1000)
    clock.at += 60.0
    assert [allowance.wait_s(1000) for _ in range(3)] == [0.0, 0.0, 0.0]


def test_what_is_wished_often_is_done_at_once_and_once_more_at_the_end() -> None:
    done: list[int] = []
    wished = 0

    async def story() -> None:
        nonlocal wished
        debounced = Debounced(lambda: done.append(wished), 3600.0)
        for _ in range(100):
            wished += 1
            debounced.wish()
        assert done == [1]
        debounced.now()
        debounced.now()

    asyncio.run(story())
    assert done == [1, 100]


def test_what_was_wished_meanwhile_is_done_when_it_is_time() -> None:
    done = asyncio.Event()
    wished = 0

    async def story() -> None:
        nonlocal wished
        debounced = Debounced(lambda: done.set() if wished == 2 else None, 0.01)
        for _ in range(2):
            wished += 1
            debounced.wish()
        async with asyncio.timeout(FACT_S):
            await done.wait()

    asyncio.run(story())


def test_without_a_loop_each_wish_is_done() -> None:
    done: list[int] = []
    debounced = Debounced(lambda: done.append(1), 3600.0)
    debounced.wish()
    debounced.wish()
    assert done == [1, 1]
