"""A deep check over links of a real kernel: four network namespaces on a bridge, one of which is slow or cut."""

import asyncio
import itertools
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from steward.adapters.process import run
from steward.model.deep import DeepKind, DeepResult
from steward.model.ids import NodeName
from steward.policy.deep.judge import judge
from tests.fakes.deep_bench import DeepBench
from tests.fakes.until import FACT_S

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("tc") is None, reason="makes network namespaces: needs root and iproute2"
)

NODES = ("n1", "n2", "n3", "n4")
ASKED = (DeepKind.CONNECTIVITY,)


@dataclass(frozen=True)
class Links:
    """Namespaces `<tag>n1`..., a bridge between them."""

    tag: str

    def name(self, node: str) -> str:
        return f"{self.tag}{node}"

    def within(self) -> dict[str, list[str]]:
        return {node: ["ip", "netns", "exec", self.name(node)] for node in NODES}

    def slow(self, node: str, rate: str) -> None:
        """What the node sends; what it gets is as fast as before."""
        words = ("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "32k", "latency", "50ms")
        ip("netns", "exec", self.name(node), *words)

    def make(self) -> None:
        """The bridge has a namespace of its own, so that no firewall of this machine filters what it carries."""
        switch = self.name("br")
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "br0", "type", "bridge")
        ip("-n", switch, "link", "set", "br0", "up")
        for number, node in enumerate(NODES, start=1):
            name = self.name(node)
            ip("netns", "add", name)
            ip("-n", switch, "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", switch, "link", "set", node, "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.231.7.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def remove(self) -> None:
        for node in (*NODES, "br"):
            ip("netns", "del", self.name(node), check=False)


def ip(*words: str, check: bool = True) -> None:
    run(["ip", *words], timeout_s=FACT_S, check=check)


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links(f"d{uuid4().hex[:5]}")
    try:
        made.make()
        yield made
    finally:
        made.remove()


def results(links: Links, folder: Path) -> dict[str, DeepResult]:
    """The first that say something of every node: on a machine that does other things a measure may prove nothing."""
    end, tries = time.monotonic() + FACT_S, itertools.count()
    while True:
        found = measured(links, folder / str(next(tries)))
        if DeepResult.INCONCLUSIVE not in found.values() or time.monotonic() >= end:
            return found


def measured(links: Links, folder: Path) -> dict[str, DeepResult]:
    folder.mkdir()
    bench = DeepBench(
        folder, NODES, DeepKind.CONNECTIVITY.value, 15.0, within=links.within(), first_address="10.231.7.1"
    )
    asyncio.run(bench.measure())
    judged = judge([*map(NodeName, NODES)], ASKED, bench.measures(), profiles={}, baselines={})
    return {str(node): one.result for node, one in judged.items()}


def test_a_node_whose_link_is_slow_in_one_direction_is_blamed_and_exactly_it(links: Links, tmp_path: Path) -> None:
    links.slow("n2", "20mbit")
    assert results(links, tmp_path) == {
        node: DeepResult.FAILED if node == "n2" else DeepResult.PASSED for node in NODES
    }


def test_when_the_first_nodes_link_is_slow_it_is_blamed_too(links: Links, tmp_path: Path) -> None:
    links.slow("n1", "20mbit")
    assert results(links, tmp_path) == {
        node: DeepResult.FAILED if node == "n1" else DeepResult.PASSED for node in NODES
    }


def test_good_links_pass(links: Links, tmp_path: Path) -> None:
    assert set(results(links, tmp_path).values()) == {DeepResult.PASSED}
