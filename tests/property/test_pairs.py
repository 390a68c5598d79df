"""Pairs of a deep check: disjoint, complete, and nobody is left out."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from steward.model.ids import NodeName
from steward.policy.deep.pairs import (
    MAX_SECOND_ROUNDS,
    Pair,
    Round,
    all_rounds,
    first_rounds,
    nodes_with_bad_pairs,
    second_rounds,
)

names = st.integers(min_value=0, max_value=40).map(lambda count: [NodeName(f"n{at}") for at in range(count)])
some = st.integers(min_value=2, max_value=40).map(lambda count: [NodeName(f"n{at}") for at in range(count)])
seeds = st.text(max_size=8)


def ends(round_: Round) -> list[NodeName]:
    return [node for pair in round_ for node in pair]


def is_disjoint(round_: Round) -> bool:
    return len(set(ends(round_))) == len(ends(round_))


@given(some, seeds)
def test_the_first_pass_measures_every_node_in_disjoint_pairs(nodes: list[NodeName], seed: str) -> None:
    rounds = first_rounds(nodes, seed)
    assert {node for one in rounds for node in ends(one)} == set(nodes)
    assert all(is_disjoint(one) for one in rounds)
    assert len(rounds) == 1 + len(nodes) % 2


@given(some, seeds)
def test_the_first_pass_depends_on_names_and_seed_only(nodes: list[NodeName], seed: str) -> None:
    assert first_rounds(nodes, seed) == first_rounds([*reversed(nodes)], seed)


@given(names)
def test_a_tournament_plays_all_pairs_once(nodes: list[NodeName]) -> None:
    rounds = all_rounds(nodes)
    played = Counter(pair for one in rounds for pair in one)
    assert len(played) == len(nodes) * (len(nodes) - 1) // 2
    assert set(played.values()) <= {1}
    assert all(is_disjoint(one) for one in rounds)
    assert len(rounds) == (0 if len(nodes) < 2 else len(nodes) - 1 + len(nodes) % 2)


@given(some, seeds, st.data())
def test_the_second_pass_pairs_suspects_with_good_partners_that_are_new(
    nodes: list[NodeName], seed: str, data: st.DataObject
) -> None:
    tried = [pair for one in first_rounds(nodes, seed) for pair in one]
    bad = data.draw(st.lists(st.sampled_from(tried), unique=True))
    good = [pair for pair in tried if pair not in bad]
    again = second_rounds(good, bad, seed)
    assert len(again) <= MAX_SECOND_ROUNDS
    assert all(is_disjoint(one) for one in again)
    assert not {pair for one in again for pair in one} & set(tried)
    if good:
        cleared = {node for pair in good for node in pair}
        assert all((pair[0] in cleared) != (pair[1] in cleared) for one in again for pair in one)


@given(st.integers(min_value=3, max_value=40), seeds, st.data())
def test_one_bad_node_meets_a_second_partner(count: int, seed: str, data: st.DataObject) -> None:
    nodes = [NodeName(f"n{at}") for at in range(count)]
    culprit = data.draw(st.sampled_from(nodes))
    tried: list[Pair] = [pair for one in first_rounds(nodes, seed) for pair in one]
    bad = [pair for pair in tried if culprit in pair]
    good = [pair for pair in tried if culprit not in pair]
    assert culprit in nodes_with_bad_pairs(good, bad)
    met = {*tried, *(pair for one in second_rounds(good, bad, seed) for pair in one)}
    assert len([pair for pair in met if culprit in pair]) >= 2
