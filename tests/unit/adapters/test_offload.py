"""Blocking calls in threads that may be left behind."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from steward.adapters.offload import Threads
from steward.adapters.process import run as run_program
from steward.ports import Permanent, Retryable


def test_a_calls_result_and_error_come_back() -> None:
    def refuse() -> None:
        raise Permanent("no")

    async def story() -> None:
        threads = Threads(2)
        assert await threads.call(lambda: 42, name="answer", timeout_s=5) == 42
        with pytest.raises(Permanent, match="no"):
            await threads.call(refuse, name="refuse", timeout_s=5)

    asyncio.run(story())


def test_a_hung_call_is_given_up_and_keeps_its_place_until_it_ends() -> None:
    released = threading.Event()

    async def story() -> None:
        threads = Threads(1)
        with pytest.raises(Retryable, match=r"hang: no answer within 0\.05 s"):
            await threads.call(released.wait, name="hang", timeout_s=0.05)
        with pytest.raises(Retryable):
            await threads.call(lambda: 1, name="second", timeout_s=0.05)
        released.set()
        assert await threads.call(lambda: 1, name="third", timeout_s=5) == 1

    asyncio.run(story())


def test_no_more_calls_than_allowed_run_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def count() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.05)
        with lock:
            running -= 1

    async def story() -> None:
        threads = Threads(3)
        await asyncio.gather(*(threads.call(count, name="count", timeout_s=10) for _ in range(12)))

    asyncio.run(story())
    assert most == 3


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
    done = run_program((sys.executable, str(script)), timeout_s=20)
    assert done.text == "hang: no answer within 0.05 s\n"
