"""Threads that have nothing to do keep nothing."""

import asyncio
import weakref

from steward.adapters.offload import Threads
from steward.workflows.pool import Pool
from tests.fakes.until import FACT_S, until


class Picture:
    """Of a large site: megabytes."""

    def look(self) -> None:
        """Nothing is seen."""


def test_an_idle_thread_of_a_pool_does_not_keep_what_its_last_call_was_about() -> None:
    pool, picture = Pool(1, "test"), Picture()
    kept = weakref.ref(picture)
    pool.submit(picture.look)
    del picture
    until("it is forgotten", lambda: kept() is None)


def test_an_idle_thread_of_asyncios_does_not_keep_what_its_last_call_was_about() -> None:
    async def story() -> weakref.ref[Picture]:
        picture = Picture()
        await Threads(1).call(picture.look, name="look", timeout_s=FACT_S)
        return weakref.ref(picture)

    kept = asyncio.run(story())
    until("it is forgotten", lambda: kept() is None)
