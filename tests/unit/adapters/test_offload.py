"""Blocking calls in threads that may be left behind."""

import asyncio
import contextlib
import gc
import sys
import threading
import weakref
from functools import partial
from pathlib import Path

import pytest

from steward.adapters.offload import Threads
from steward.adapters.process import run as run_program
from steward.ports import Permanent, Retryable
from tests.fakes.until import FACT_S, comes_true


def test_a_calls_result_and_error_come_back() -> None:
    def refuse() -> None:
        raise Permanent("no")

    async def story() -> None:
        threads = Threads(2)
        assert await threads.call(lambda: 42, name="answer", timeout_s=FACT_S) == 42
        with pytest.raises(Permanent, match="no"):
            await threads.call(refuse, name="refuse", timeout_s=FACT_S)

    asyncio.run(story())


def test_an_error_that_was_dealt_with_is_freed_at_once() -> None:
    """It knows the frames of its thread, and what was asked in them."""

    class Asked:
        def refuse(self) -> None:
            raise Permanent("no")

    async def story() -> None:
        threads, asked = Threads(2), Asked()
        kept = weakref.ref(asked)
        with contextlib.suppress(Permanent):
            await threads.call(asked.refuse, name="refuse", timeout_s=FACT_S)
        del asked
        await comes_true("what was asked is freed", lambda: kept() is None)

    gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()


def test_a_hung_call_is_given_up_and_keeps_its_place_until_it_ends() -> None:
    released = threading.Event()

    async def story() -> None:
        threads = Threads(1)
        with pytest.raises(Retryable, match=r"hang: no answer within 0\.05 s"):
            await threads.call(released.wait, name="hang", timeout_s=0.05)
        with pytest.raises(Retryable):
            await threads.call(lambda: 1, name="second", timeout_s=0.05)
        released.set()
        assert await threads.call(lambda: 1, name="third", timeout_s=FACT_S) == 1

    asyncio.run(story())


def test_as_many_calls_as_allowed_run_at_once_and_no_more() -> None:
    running, lock, gate = list[int](), threading.Lock(), threading.Event()

    def hold(number: int) -> None:
        with lock:
            running.append(number)
        assert gate.wait(FACT_S)

    async def story() -> None:
        threads = Threads(3)
        calls = [
            asyncio.ensure_future(threads.call(partial(hold, n), name="hold", timeout_s=2 * FACT_S)) for n in range(12)
        ]
        await comes_true("three run", lambda: len(running) == 3)
        await asyncio.sleep(0.2)
        assert len(running) == 3
        gate.set()
        await asyncio.gather(*calls)

    asyncio.run(story())
    assert sorted(running) == list(range(12))


PROGRAM = """
import asyncio, threading
from steward.adapters.offload import Threads
async def main():
    try:
        await Threads(1).call(threading.Event().wait, name="hang", timeout_s=0.05)
    except Exception as error:
        print(error)
asyncio.run(main())
"""


def test_a_process_ends_although_a_call_hangs_for_ever(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text(PROGRAM)
    done = run_program((sys.executable, str(script)), timeout_s=FACT_S)
    assert done.text == "hang: no answer within 0.05 s\n"
