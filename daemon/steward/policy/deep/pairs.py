"""The pairs of nodes that a deep check measures, in rounds of disjoint pairs. Pure: the seed alone makes the order."""

import hashlib
from collections.abc import Collection, Iterable, Sequence

from steward.model.ids import NodeName

Pair = tuple[NodeName, NodeName]
"""Two nodes in the order of their names."""
Round = tuple[Pair, ...]
"""Pairs that share no node: they are measured at the same time."""

MAX_SECOND_ROUNDS = 4


def pair_of(one: NodeName, other: NodeName) -> Pair:
    return (one, other) if one < other else (other, one)


def first_rounds(nodes: Collection[NodeName], seed: str) -> tuple[Round, ...]:
    """Return the first rounds: a random matching of all nodes in pairs.

    With an odd number, the node that is left over gets a round of its own with a partner from the first. With fewer
    than two nodes there is no round.
    """
    order = _shuffled(nodes, seed)
    if len(order) < 2:
        return ()
    matched = tuple(pair_of(order[at], order[at + 1]) for at in range(0, len(order) - 1, 2))
    if len(order) % 2 == 0:
        return (matched,)
    return matched, (pair_of(order[-1], order[0]),)


def all_rounds(nodes: Collection[NodeName]) -> tuple[Round, ...]:
    """Return every pair exactly once (the circle method): N-1 rounds for an even number of nodes, N for an odd one."""
    circle: list[NodeName | None] = [*sorted(set(nodes))]
    if len(circle) < 2:
        return ()
    if len(circle) % 2:
        circle.append(None)
    rounds = []
    for _ in range(len(circle) - 1):
        rounds.append(_opposite_pairs(circle))
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return tuple(rounds)


def nodes_with_bad_pairs(good: Iterable[Pair], bad: Iterable[Pair]) -> frozenset[NodeName]:
    """Return the nodes with a bad pair and no good one: each is at fault, or met a node that is."""
    cleared = {node for pair in good for node in pair}
    return frozenset(node for pair in bad for node in pair if node not in cleared)


def second_rounds(good: Collection[Pair], bad: Collection[Pair], seed: str) -> tuple[Round, ...]:
    """Return at most `MAX_SECOND_ROUNDS` rounds, in which each suspect meets a good node that it has not met.

    The second result shows which node was at fault in the first. Without good nodes, suspects meet each other.
    """
    waiting = _shuffled(nodes_with_bad_pairs(good, bad), seed)
    cleared = _shuffled({node for pair in good for node in pair}, seed + "/good")
    met = {*good, *bad}
    rounds: list[Round] = []
    while waiting and len(rounds) < MAX_SECOND_ROUNDS:
        chosen = _matched(waiting, cleared or waiting, met)
        if not chosen:
            break
        rounds.append(chosen)
        met.update(chosen)
        paired = {node for pair in chosen for node in pair}
        waiting = [node for node in waiting if node not in paired]
    return tuple(rounds)


def _matched(ones: Sequence[NodeName], others: Sequence[NodeName], met: Collection[Pair]) -> Round:
    taken: set[NodeName] = set()
    chosen: list[Pair] = []
    for one in ones:
        if one in taken:
            continue
        partner = next((o for o in others if o != one and o not in taken and pair_of(one, o) not in met), None)
        if partner is not None:
            taken |= {one, partner}
            chosen.append(pair_of(one, partner))
    return tuple(chosen)


def _opposite_pairs(circle: Sequence[NodeName | None]) -> Round:
    facing = zip(circle[: len(circle) // 2], reversed(circle), strict=False)
    return tuple(pair_of(one, other) for one, other in facing if one is not None and other is not None)


def _shuffled(nodes: Iterable[NodeName], seed: str) -> list[NodeName]:
    """Return the nodes in an order that depends on their names and the seed only."""
    return sorted(set(nodes), key=lambda node: hashlib.sha256(f"{seed}/{node}".encode()).digest())
