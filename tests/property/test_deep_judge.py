"""Whom a deep check blames: the one bad node and nobody else; no data, no blame; order does not matter."""

from hypothesis import given
from hypothesis import strategies as st

from steward.model.deep import DeepKind, DeepResult, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.policy.deep.judge import judge
from steward.policy.deep.pairs import Pair, all_rounds, first_rounds, second_rounds

GOOD, BAD = 9400.0, 700.0
PAIRS_ONLY = frozenset({DeepKind.CONNECTIVITY})


def names(count: int) -> list[NodeName]:
    return [NodeName(f"n{at}") for at in range(count)]


def told(pair: Pair, *, bad: bool, fails: bool = False) -> list[Measure]:
    outcome = Outcome.FAILED if bad and fails else Outcome.PASSED
    return [
        Measure(
            check="tcp.bandwidth",
            node=here,
            partner=there,
            outcome=outcome,
            value=BAD if bad else GOOD,
            unit="Mbit/s",
        )
        for here, there in (pair, pair[::-1])
    ]


def two_passes(nodes: list[NodeName], bad: frozenset[Pair] | NodeName, seed: str, *, fails: bool) -> list[Measure]:
    def is_bad(pair: Pair) -> bool:
        return pair in bad if isinstance(bad, frozenset) else bad in pair

    first = [pair for one in first_rounds(nodes, seed) for pair in one]
    again = second_rounds([p for p in first if not is_bad(p)], [p for p in first if is_bad(p)], seed)
    pairs = [*first, *(pair for one in again for pair in one)]
    return [one for pair in pairs for one in told(pair, bad=is_bad(pair), fails=fails)]


def results(nodes: list[NodeName], measures: list[Measure]) -> dict[NodeName, DeepResult]:
    judged = judge(nodes, PAIRS_ONLY, measures, profiles={}, baselines={})
    return {node: one.result for node, one in judged.items()}


@given(st.integers(min_value=4, max_value=32), st.text(max_size=6), st.booleans(), st.data())
def test_a_single_bad_node_is_blamed_and_exactly_it(count: int, seed: str, fails: bool, data: st.DataObject) -> None:
    nodes = names(count)
    culprit = data.draw(st.sampled_from(nodes))
    found = results(nodes, two_passes(nodes, culprit, seed, fails=fails))
    assert {node for node, one in found.items() if one is DeepResult.FAILED} == {culprit}
    assert all(one is DeepResult.PASSED for node, one in found.items() if node != culprit)


@given(st.text(max_size=6), st.sampled_from(names(3)))
def test_of_three_nodes_the_one_that_fails_with_both_is_blamed(seed: str, culprit: NodeName) -> None:
    found = results(names(3), two_passes(names(3), culprit, seed, fails=True))
    assert {node for node, one in found.items() if one is DeepResult.FAILED} == {culprit}


@given(st.integers(min_value=4, max_value=32), st.text(max_size=6), st.booleans(), st.data())
def test_a_bad_link_blames_neither_of_its_ends(count: int, seed: str, fails: bool, data: st.DataObject) -> None:
    nodes = names(count)
    link = data.draw(st.sampled_from([pair for one in first_rounds(nodes, seed) for pair in one]))
    found = results(nodes, two_passes(nodes, frozenset({link}), seed, fails=fails))
    assert DeepResult.FAILED not in found.values()
    assert {node for node, one in found.items() if one is DeepResult.INCONCLUSIVE} == set(link)


@given(st.integers(min_value=4, max_value=16), st.data())
def test_in_a_tournament_a_bad_node_and_a_bad_link_are_told_apart(count: int, data: st.DataObject) -> None:
    nodes = names(count)
    culprit = data.draw(st.sampled_from(nodes))
    pairs = [pair for one in all_rounds(nodes) for pair in one]
    link = data.draw(st.sampled_from([pair for pair in pairs if culprit not in pair]))
    measures = [one for pair in pairs for one in told(pair, bad=culprit in pair or pair == link, fails=True)]
    blamed = {node for node, one in results(nodes, measures).items() if one is DeepResult.FAILED}
    assert blamed - {culprit} <= (set(link) if count == 4 else set())
    assert culprit in blamed or count == 4


@given(st.integers(min_value=1, max_value=8), st.sampled_from([Outcome.UNKNOWN, Outcome.SKIPPED]))
def test_without_data_nobody_is_blamed(count: int, outcome: Outcome) -> None:
    nodes = names(count)
    assert set(results(nodes, []).values()) == {DeepResult.INCONCLUSIVE}
    measures = [
        Measure(check="tcp.bandwidth", node=node, outcome=outcome, value=float("nan"), unit="") for node in nodes
    ]
    assert DeepResult.FAILED not in results(nodes, measures).values()


some_measures = st.lists(
    st.builds(
        Measure,
        check=st.sampled_from(["cpu.verify", "memory.keep", "tcp.bandwidth"]),
        node=st.sampled_from(names(6)),
        partner=st.none() | st.sampled_from(names(6)),
        outcome=st.sampled_from(Outcome),
        value=st.floats(min_value=0, max_value=1e6) | st.just(float("nan")),
        unit=st.just("x"),
    ),
    max_size=40,
)


@given(some_measures.flatmap(lambda those: st.tuples(st.just(those), st.permutations(those))))
def test_order_does_not_matter(orders: tuple[list[Measure], list[Measure]]) -> None:
    one, other = (judge(names(6), frozenset(DeepKind), those, profiles={}, baselines={}) for those in orders)
    assert one == other


@given(some_measures)
def test_a_node_of_which_nothing_bad_was_told_never_fails(measures: list[Measure]) -> None:
    quiet = [one for one in measures if one.outcome in (Outcome.UNKNOWN, Outcome.SKIPPED)]
    found = judge(names(6), frozenset(DeepKind), quiet, profiles={}, baselines={})
    assert all(one.result is not DeepResult.FAILED for one in found.values())
