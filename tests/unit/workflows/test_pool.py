"""Threads that have nothing to do keep nothing."""

import asyncio
import threading
import weakref

from steward.adapters.offload import Threads
from steward.workflows.pool import WorkerPool
from tests.fakes.until import FACT_S, until


class Picture:
    """Of a large site: megabytes."""

    def look(self) -> None:
        """Nothing is seen."""


def test_an_idle_thread_of_a_pool_does_not_keep_what_its_last_call_was_about() -> None:
    pool, picture = WorkerPool(1, "test"), Picture()
    kept = weakref.ref(picture)
    pool.submit(picture.look)
    del picture
    until("it is forgotten", lambda: kept() is None)


def test_the_threads_of_a_pool_that_nobody_has_any_more_end_when_its_calls_are_done() -> None:
    pool, go_on, done = WorkerPool(3, "passing"), threading.Event(), list[bool]()
    for _ in range(9):
        pool.submit(lambda: done.append(go_on.wait(FACT_S)))
    del pool
    assert sum(thread.name.startswith("passing-") for thread in threading.enumerate()) == 3
    go_on.set()
    until("they end", lambda: not any(thread.name.startswith("passing-") for thread in threading.enumerate()))
    assert done == [True] * 9


def test_an_idle_thread_of_asyncios_does_not_keep_what_its_last_call_was_about() -> None:
    async def story() -> weakref.ref[Picture]:
        picture = Picture()
        await Threads(1).call(picture.look, name="look", timeout_s=FACT_S)
        return weakref.ref(picture)

    kept = asyncio.run(story())
    until("it is forgotten", lambda: kept() is None)
