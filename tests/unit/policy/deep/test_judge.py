"""What a deep check says of nodes, with the numbers that it rests on."""

import math

from steward.model.deep import Baseline, DeepKind, DeepResult, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.policy.deep.judge import judge
from steward.policy.deep.usual import KEPT_VALUES, baseline_key, with_new_values

N1, N2, N3, N4 = (NodeName(f"n{at}") for at in (1, 2, 3, 4))
ALL = (N1, N2, N3, N4)
STRESS = frozenset({DeepKind.STRESS})


def measure(
    node: NodeName,
    value: float = 100.0,
    *,
    check: str = "cpu.verify",
    outcome: Outcome = Outcome.PASSED,
    text: str = "",
    partner: NodeName | None = None,
) -> Measure:
    return Measure(check=check, node=node, outcome=outcome, value=value, unit="rounds/s", text=text, partner=partner)


def usual(value: float, count: int, profile: str = "c1") -> dict[str, Baseline]:
    values = (value,) * count
    return {f"cpu.verify:{profile}": Baseline(check="cpu.verify", profile=profile, values=values)}


def test_a_node_whose_memory_forgets_fails_by_itself() -> None:
    bad = measure(N1, math.nan, check="memory.keep", outcome=Outcome.FAILED, text="3 of 4096 blocks differ")
    found = judge([N1, N2], STRESS, [bad, measure(N1), measure(N2)], profiles={}, baselines={})
    assert (found[N1].result, found[N1].why) == (DeepResult.FAILED, "memory.keep: 3 of 4096 blocks differ")
    assert found[N2].result is DeepResult.PASSED


def test_a_value_below_the_learnt_bar_fails_and_says_the_numbers() -> None:
    found = judge([N1], STRESS, [measure(N1, 84.0)], profiles={N1: "c1"}, baselines=usual(100.0, 20))
    assert found[N1].result is DeepResult.FAILED
    assert found[N1].why == "cpu.verify 84 rounds/s is below 85% of the usual 100 rounds/s (20 good runs)"


def test_nineteen_good_runs_are_too_few_to_compare_with() -> None:
    found = judge([N1], STRESS, [measure(N1, 10.0)], profiles={N1: "c1"}, baselines=usual(100.0, 19))
    assert found[N1].result is DeepResult.PASSED


def test_another_profiles_baseline_is_not_used() -> None:
    found = judge([N1], STRESS, [measure(N1, 10.0)], profiles={N1: "c2"}, baselines=usual(100.0, 50))
    assert found[N1].result is DeepResult.PASSED


def test_without_a_baseline_the_slowest_of_four_fails_below_half_of_the_median() -> None:
    values = [measure(N1, 49.0), measure(N2), measure(N3), measure(N4, 51.0)]
    slower = [measure(N1, 30.0), *values[1:]]
    found = judge(ALL, STRESS, slower, profiles={}, baselines={})
    assert [found[node].result for node in ALL] == [DeepResult.FAILED] + [DeepResult.PASSED] * 3
    assert found[N1].why == "cpu.verify 30 rounds/s is below 50% of this run's median of 75.5 rounds/s (4 nodes)"
    assert judge(ALL, STRESS, values, profiles={}, baselines={})[N1].result is DeepResult.PASSED


def test_three_nodes_are_not_compared_with_each_other() -> None:
    values = [measure(N1, 1.0), measure(N2), measure(N3)]
    found = judge([N1, N2, N3], STRESS, values, profiles={}, baselines={})
    assert {one.result for one in found.values()} == {DeepResult.PASSED}


def test_when_most_nodes_are_slow_none_of_them_is_blamed() -> None:
    values = [measure(node, 50.0) for node in (N1, N2, N3)] + [measure(N4)]
    found = judge(ALL, STRESS, values, profiles=dict.fromkeys(ALL, "c1"), baselines=usual(100.0, 30))
    assert [found[node].result for node in ALL] == [DeepResult.INCONCLUSIVE] * 3 + [DeepResult.PASSED]
    assert "as for most nodes of this run" in found[N1].why


def test_a_slow_disk_is_told_and_proves_nothing() -> None:
    values = [measure(node, 100.0, check="disk.write") for node in (N2, N3, N4)]
    slow = measure(N1, 10.0, check="disk.write")
    found = judge(ALL, STRESS, [slow, *values], profiles={}, baselines={})
    assert found[N1].result is DeepResult.INCONCLUSIVE
    assert found[N1].why.endswith("(4 nodes), which proves no fault")


def test_a_tool_that_works_for_no_pair_is_nobodys_fault_and_one_that_works_for_others_is_unclear() -> None:
    tcp = [measure(here, 900.0, check="tcp.bandwidth", partner=there) for here, there in ((N1, N2), (N3, N4))]
    dead = [
        measure(here, math.nan, check="rdma.bandwidth", outcome=Outcome.UNKNOWN, partner=there)
        for here, there in ((N1, N2), (N3, N4))
    ]
    kinds = frozenset({DeepKind.CONNECTIVITY})
    found = judge(ALL, kinds, [*tcp, *dead], profiles={}, baselines={})
    assert {one.result for one in found.values()} == {DeepResult.PASSED}
    alive = measure(N3, 390.0, check="rdma.bandwidth", partner=N4)
    found = judge(ALL, kinds, [*tcp, dead[0], alive], profiles={}, baselines={})
    assert [found[node].result for node in (N1, N3)] == [DeepResult.INCONCLUSIVE, DeepResult.PASSED]


def test_what_could_not_be_measured_is_inconclusive_and_says_why() -> None:
    lost = measure(N1, math.nan, check="pair.presence", outcome=Outcome.UNKNOWN, text="it did not come within 30 s")
    found = judge([N1, N2], STRESS, [lost, measure(N1), measure(N2)], profiles={}, baselines={})
    assert found[N1].result is DeepResult.INCONCLUSIVE
    assert found[N1].why == "pair.presence could not be measured: it did not come within 30 s"


def test_a_kind_of_which_nothing_was_told_is_inconclusive() -> None:
    found = judge([N1], frozenset(DeepKind), [measure(N1)], profiles={}, baselines={})
    assert (found[N1].result, found[N1].why) == (DeepResult.INCONCLUSIVE, "InstanceConnectivity: nothing was reported")


def test_only_skipped_measures_are_no_pass() -> None:
    skip = measure(N1, math.nan, outcome=Outcome.SKIPPED, text="no GPU")
    found = judge([N1], STRESS, [skip], profiles={}, baselines={})
    assert (found[N1].result, found[N1].why) == (DeepResult.SKIPPED, "cpu.verify skipped: no GPU")


def test_baselines_are_learnt_from_nodes_that_passed_and_the_newest_are_kept() -> None:
    results = {N1: DeepResult.PASSED, N2: DeepResult.INCONCLUSIVE}
    profiles = {N1: "c1", N2: "c1"}
    before = usual(1.0, KEPT_VALUES)
    after = with_new_values(before, [measure(N1, 90.0), measure(N2, 10.0)], results, profiles)
    assert after["cpu.verify:c1"].values == (1.0,) * (KEPT_VALUES - 1) + (90.0,)


def test_a_pair_is_learnt_once_although_both_ends_tell_of_it() -> None:
    results = {N1: DeepResult.PASSED, N2: DeepResult.PASSED}
    ends = [
        measure(N1, 900.0, check="tcp.bandwidth", partner=N2),
        measure(N2, 900.0, check="tcp.bandwidth", partner=N1),
    ]
    after = with_new_values({}, ends, results, {N1: "a", N2: "b"})
    assert after[baseline_key("tcp.bandwidth", "a+b")].values == (900.0,)


def test_values_that_are_no_good_numbers_are_not_learnt() -> None:
    odd = [measure(N1, value) for value in (math.nan, math.inf, 0.0, -3.0)]
    assert with_new_values({}, odd, {N1: DeepResult.PASSED}, {N1: "c1"}) == {}
