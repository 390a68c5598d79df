"""Threads that are used again, and that one which hangs does not hold up."""

import asyncio
import resource
import threading
import time
from collections.abc import Callable

import pytest

from steward.adapters.offload import KEPT, Crew, Threads
from tests.fakes.until import FACT_S, comes_true

PATIENT_S = FACT_S
"""So long no thread is started for work that waits: how few are enough does not depend on how busy the machine is."""


async def done(crew: Crew, work: Callable[[], object], times: int = 1) -> None:
    """Give it `times` pieces of work, and wait for all."""
    left = threading.Semaphore(0)

    def once() -> None:
        work()
        left.release()

    for number in range(times):
        crew.submit(once, f"work {number}")
    ended = 0
    async with asyncio.timeout(FACT_S):
        while ended < times:
            ended += left.acquire(blocking=False)
            await asyncio.sleep(0.001)


def test_much_quick_work_needs_few_threads() -> None:
    seen: set[int] = set()
    asyncio.run(done(Crew(PATIENT_S), lambda: seen.add(threading.get_ident()), times=200))
    assert len(seen) <= KEPT


def test_work_one_after_the_other_is_done_by_threads_that_are_there() -> None:
    seen: set[int] = set()

    async def story() -> None:
        crew = Crew(PATIENT_S)
        for _ in range(20):
            await done(crew, lambda: seen.add(threading.get_native_id()))

    asyncio.run(story())
    assert len(seen) <= KEPT


def test_quick_work_that_comes_together_is_one_hand_over() -> None:
    """One thread is woken, and the loop once or twice: a wake for each piece disturbed a compute node's jobs."""
    seen: set[int] = set()

    async def story() -> int:
        crew = Crew(PATIENT_S)
        threads = [Threads(1, crew) for _ in range(40)]
        await threads[0].call(_seen_by(seen), name="first", timeout_s=FACT_S)
        seen.clear()
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        await asyncio.gather(*(one.call(_seen_by(seen), name="look", timeout_s=FACT_S) for one in threads))
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before

    assert min(asyncio.run(story()) for _ in range(5)) <= 8
    assert len(seen) == 1


def _seen_by(seen: set[int]) -> Callable[[], None]:
    def look() -> None:
        time.sleep(0.0002)
        seen.add(threading.get_native_id())

    return look


def test_an_outcome_is_told_although_the_work_behind_it_hangs() -> None:
    free = threading.Event()

    async def story() -> list[object]:
        quick, hung = Threads(3), Threads(1)
        calls = [quick.call(lambda: 42, name="quick", timeout_s=FACT_S) for _ in range(3)]
        stuck = asyncio.ensure_future(hung.call(free.wait, name="hangs", timeout_s=2 * FACT_S))
        found = await asyncio.gather(*calls)
        assert not stuck.done()
        free.set()
        return [*found, await stuck]

    try:
        assert asyncio.run(story()) == [42, 42, 42, True]
    finally:
        free.set()


def test_what_hangs_holds_up_nothing_else() -> None:
    free = threading.Event()

    def wait() -> None:
        free.wait()

    async def story() -> None:
        crew = Crew()
        for _ in range(5):
            crew.submit(wait, "hangs")
        await done(crew, lambda: None, times=10)

    try:
        asyncio.run(story())
    finally:
        free.set()


def test_when_much_hung_and_is_free_again_most_threads_end() -> None:
    free, names = threading.Event(), set[threading.Thread]()

    def hang() -> None:
        names.add(threading.current_thread())
        free.wait()

    async def story() -> None:
        crew = Crew()
        for _ in range(6):
            crew.submit(hang, "hangs")
        await comes_true("all hang", lambda: len(names) == 6)
        free.set()
        await comes_true("most have ended", lambda: sum(thread.is_alive() for thread in names) <= KEPT)

    asyncio.run(story())


def test_work_that_a_loop_left_behind_is_done_with_the_next_loops() -> None:
    free, did = threading.Event(), list[str]()
    crew = Crew()

    def wait() -> None:
        free.wait()

    async def first() -> None:
        crew.submit(wait, "hangs")
        crew.submit(lambda: did.append("left"), "left")

    asyncio.run(first())
    try:
        asyncio.run(done(crew, lambda: None))
    finally:
        free.set()
    assert did == ["left"]


def test_without_any_thread_to_be_had_the_caller_hears_of_it() -> None:
    class NoThreads(Crew):
        def _start(self) -> None:
            raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError):
        asyncio.run(done(NoThreads(), lambda: None))
