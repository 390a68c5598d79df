"""The endpoint for AWS clients that is made when the first of them calls."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from steward.api.json11.route import Json11
from steward.api.late import LateEndpoint
from steward.ports import Permanent
from tests.fakes.aws_bench import AwsBench, post, reached_at, signed
from tests.fakes.until import FACT_S

EMPTY: dict[str, list[str]] = {"ClusterSummaries": []}


@pytest.fixture
def bench() -> AwsBench:
    return AwsBench(handlers={"ListClusters": lambda _caller, _members: EMPTY})


def test_a_heads_start_reads_neither_that_nor_the_templates_of_its_page() -> None:
    told = "import sys, steward.head.serve; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    assert "steward" in loaded
    assert not {"botocore", "jinja2", "regex", "urllib3"} & set(loaded)


def test_it_is_made_once_though_many_call_at_once(bench: AwsBench) -> None:
    made: list[Json11] = []
    all_of_them = threading.Barrier(8)

    def make() -> Json11:
        made.append(bench.endpoint())
        return made[-1]

    def call(_: int) -> object:
        all_of_them.wait(FACT_S)
        return bench.client().operate("ListClusters", {})

    with reached_at(bench, LateEndpoint(make)), ThreadPoolExecutor(8) as callers:
        assert list(callers.map(call, range(8))) == [EMPTY] * 8
    assert len(made) == 1


def test_why_it_cannot_be_made_is_told_and_the_next_call_tries_again(bench: AwsBench) -> None:
    wrong: list[Exception] = [ImportError("no name Shape"), Permanent("install botocore 1.44 or newer")]

    def make() -> Json11:
        if wrong:
            raise wrong.pop()
        return bench.endpoint()

    with reached_at(bench, LateEndpoint(make)):
        for why in ("install botocore 1.44 or newer", "restart stewardd if it was upgraded"):
            refused = post(bench, b"{}", signed("ListClusters", b"{}"))
            assert (refused.status_code, refused.json()["__type"]) == (503, "ServiceUnavailable")
            assert why in refused.json()["message"]
        assert bench.client().operate("ListClusters", {}) == EMPTY
