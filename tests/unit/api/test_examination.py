"""`steward doctor` costs Slurm's commands and a look at the provider: nobody can have it done over and over."""

import asyncio
import threading

from steward.api.examination import Examination
from steward.workflows.doctor import Line, ok


class Looks:
    """An examination that counts, and how many ran at once."""

    def __init__(self) -> None:
        self.count = self.at_once = 0
        self._lock = threading.Lock()

    def __call__(self) -> list[Line]:
        self.at_once += not self._lock.acquire(blocking=False)
        self.count += 1
        threading.Event().wait(0.05)
        self._lock.release()
        return [ok("look", str(self.count))]


def test_those_who_ask_together_share_one_look() -> None:
    looks = Looks()

    async def story() -> None:
        examination = Examination(looks)
        told = await asyncio.gather(*(examination.lines() for _ in range(20)))
        assert {line.text for lines in told for line in lines} == {"1"}

    asyncio.run(story())
    assert (looks.count, looks.at_once) == (1, 0)


def test_who_asks_later_gets_a_new_one() -> None:
    looks = Looks()

    async def story() -> None:
        examination = Examination(looks, fresh_s=0.0)
        assert [(await examination.lines())[0].text for _ in range(3)] == ["1", "2", "3"]

    asyncio.run(story())
