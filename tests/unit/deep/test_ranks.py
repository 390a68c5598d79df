"""Ranks of a deep check as real processes that find each other over loopback, measure, and tell their agents."""

import asyncio
from pathlib import Path

import pytest

from steward.model.deep import DeepKind, DeepResult
from steward.model.health import Outcome
from steward.policy.deep.judge import judge
from tests.fakes.deep_bench import DeepBench

FOUR = ("n1", "n2", "n3", "n4")
PAIRS, STRESS = DeepKind.CONNECTIVITY, DeepKind.STRESS


def run(bench: DeepBench) -> None:
    """Every rank must have ended by itself and told all."""
    ended = asyncio.run(bench.measure())
    assert {node: done.error_text for node, done in ended.items() if done.returncode} == {}


def results(bench: DeepBench, *kinds: DeepKind) -> dict[str, DeepResult]:
    nodes = list(bench.desks)
    judged = judge(nodes, kinds, bench.measures(), profiles={}, baselines={})  # type: ignore[arg-type]
    return {str(node): one.result for node, one in judged.items()}


def test_four_ranks_measure_themselves_and_each_other(tmp_path: Path) -> None:
    bench = DeepBench(tmp_path, FOUR, f"{STRESS.value},{PAIRS.value}", 12.0)
    run(bench)
    for node in FOUR:
        report = bench.report(node)
        assert report.is_done
        found = {one.check for one in report.measures if one.outcome is Outcome.PASSED}
        assert {"cpu.verify", "memory.keep", "disk.write", "tcp.bandwidth"} <= found
        assert [one.text for one in report.measures if one.outcome is Outcome.FAILED] == []
    assert {one.partner for one in bench.report("n1").measures} - {None} != set()


def test_a_slow_node_is_found_out_and_exactly_it(tmp_path: Path) -> None:
    bench = DeepBench(tmp_path, FOUR, PAIRS.value, 12.0, more={"n3": ("--throttle-mbps", "20")})
    run(bench)
    assert [node for node, one in results(bench, PAIRS).items() if one is DeepResult.FAILED] == ["n3"]


def test_a_rank_that_does_not_come_is_unknown_and_the_others_are_measured(tmp_path: Path) -> None:
    bench = DeepBench(tmp_path, FOUR, PAIRS.value, 10.0, absent=frozenset({"n2"}))
    run(bench)
    found = results(bench, PAIRS)
    assert found == {node: DeepResult.INCONCLUSIVE if node == "n2" else DeepResult.PASSED for node in FOUR}


def test_when_the_first_rank_does_not_come_nobody_hangs_and_nobody_is_blamed(tmp_path: Path) -> None:
    bench = DeepBench(tmp_path, ("n1", "n2"), PAIRS.value, 5.0, absent=frozenset({"n1"}))
    run(bench)
    assert results(bench, PAIRS) == {"n1": DeepResult.INCONCLUSIVE, "n2": DeepResult.INCONCLUSIVE}


@pytest.mark.parametrize("nodes", [FOUR[:1], FOUR[:2], FOUR[:3]], ids=len)
def test_few_ranks_measure_what_they_can(tmp_path: Path, nodes: tuple[str, ...]) -> None:
    bench = DeepBench(tmp_path, nodes, PAIRS.value, 6.0)
    run(bench)
    wanted = DeepResult.SKIPPED if len(nodes) == 1 else DeepResult.PASSED
    assert set(results(bench, PAIRS).values()) == {wanted}


def test_in_a_tournament_every_node_meets_every_other(tmp_path: Path) -> None:
    bench = DeepBench(tmp_path, FOUR, PAIRS.value, 10.0, all_more=("--acceptance",))
    run(bench)
    for node in FOUR:
        met = {one.partner for one in bench.report(node).measures if one.check == "tcp.bandwidth"}
        assert met == set(FOUR) - {node}
