"""However many ask for costly pages, few are made at once, and orders and cheap pages do not wait for them. `steward
doctor`, which costs Slurm's commands and a look at the provider, is not done over and over."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from steward.api.turns import Examination, Turns
from steward.workflows.doctor import DoctorLine, ok
from tests.fakes.api_bench import ApiBench
from tests.fakes.serving import serving
from tests.fakes.until import FACT_S, until


class Slow:
    """A page that is made when it may `go`."""

    def __init__(self) -> None:
        self.go, self.lock = threading.Event(), threading.Lock()
        self.now = self.most = self.made = 0

    def page(self, _request: Request) -> Response:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.go.wait(FACT_S)
        with self.lock:
            self.now, self.made = self.now - 1, self.made + 1
        return PlainTextResponse("slow")


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def url(slow: Slow) -> Iterator[str]:
    turns = Turns(at_once=2, waiting=3, wait_s=FACT_S)
    routes = [turns.route("/slow", slow.page), Route("/quick", lambda _request: PlainTextResponse("quick"))]
    with serving(uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off"))) as url:
        yield url


def test_a_flood_of_costly_pages_is_bounded_and_the_others_go_on(slow: Slow, url: str) -> None:
    with ExitStack() as stack:
        crowd = stack.enter_context(ThreadPoolExecutor(20))
        stack.callback(slow.go.set)
        asked = [crowd.submit(_status, f"{url}/slow") for _ in range(20)]
        until("all but five are sent away", lambda: sum(one.done() for one in asked) == 15)
        assert requests.get(f"{url}/quick", timeout=FACT_S).text == "quick"
        slow.go.set()
        statuses = sorted(one.result(FACT_S) for one in asked)
    assert statuses == [200] * 5 + [503] * 15
    assert slow.most == 2


def test_who_waits_too_long_is_told_to_come_again(slow: Slow) -> None:
    turns = Turns(at_once=1, waiting=3, wait_s=0.05)
    app = Starlette(routes=[turns.route("/slow", slow.page)])
    with ExitStack() as stack:
        url = stack.enter_context(serving(uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))))
        crowd = stack.enter_context(ThreadPoolExecutor(1))
        stack.callback(slow.go.set)
        first: Future[int] = crowd.submit(_status, f"{url}/slow")
        until("the first is made", lambda: slow.now == 1)
        assert _status(f"{url}/slow") == 503
        slow.go.set()
        assert first.result(FACT_S) == 200
        until("its place is free", lambda: _status(f"{url}/slow") == 200)


def test_a_head_answers_orders_while_many_ask_for_its_plan(api: ApiBench) -> None:
    with ThreadPoolExecutor(24) as crowd:
        asked = [crowd.submit(_status, f"{api.url}/v1/plan") for _ in range(60)]
        assert api.client().pause("a flood")["done"]
        assert {one.result(FACT_S) for one in asked} <= {200, 503}


def _status(url: str) -> int:
    return requests.get(url, timeout=FACT_S).status_code


class Looks:
    """An examination that counts, and how many ran at once."""

    def __init__(self) -> None:
        self.count = self.at_once = 0
        self._lock = threading.Lock()

    def __call__(self) -> list[DoctorLine]:
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
