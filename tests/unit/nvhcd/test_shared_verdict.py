"""The agent is asked once for all who came since the last question, and nobody gets an older answer than his call."""

import asyncio
import threading

from steward.adapters.wire.verdict_line import Fine, Unknown, Verdict
from steward.nvhcd.server import SharedVerdict


class Agent:
    """It answers when it is let go, the number of the question."""

    def __init__(self) -> None:
        self.asked, self.go = 0, threading.Semaphore(0)

    def ask(self) -> Verdict:
        self.asked += 1
        number = self.asked
        assert self.go.acquire(timeout=10.0)
        return Unknown(why=f"question {number}")


def test_calls_that_come_while_one_is_asked_about_share_the_next_question() -> None:
    async def story() -> None:
        agent = Agent()
        verdict = SharedVerdict(agent.ask)
        first = asyncio.create_task(verdict.now())
        while not agent.asked:
            await asyncio.sleep(0.001)
        later = [asyncio.create_task(verdict.now()) for _ in range(100)]
        await asyncio.sleep(0.01)
        agent.go.release(2)
        assert await first == Unknown(why="question 1")
        assert set(await asyncio.gather(*later)) == {Unknown(why="question 2")}
        assert agent.asked == 2

    asyncio.run(story())


def test_one_who_goes_away_takes_the_answer_from_no_other() -> None:
    async def story() -> None:
        agent = Agent()
        verdict = SharedVerdict(agent.ask)
        gone, stays = asyncio.create_task(verdict.now()), asyncio.create_task(verdict.now())
        while not agent.asked:
            await asyncio.sleep(0.001)
        gone.cancel()
        agent.go.release()
        assert await stays == Unknown(why="question 1")

    asyncio.run(story())


def test_each_later_call_is_a_question_of_its_own() -> None:
    async def story() -> None:
        answers = iter((Fine(), Unknown(why="no agent")))
        verdict = SharedVerdict(lambda: next(answers))
        assert (await verdict.now(), await verdict.now()) == (Fine(), Unknown(why="no agent"))

    asyncio.run(story())
