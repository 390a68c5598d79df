"""The judgement of a deep check's measures on each node: passed, failed or inconclusive. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.deep import Baseline, DeepKind, DeepResult, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.policy.deep.pairs import Pair, pair_of
from steward.policy.deep.usual import NO_PROOF, Usual, number

# The node at fault for a bad pair: blamed only if the other results leave no other explanation.

_OPTIONAL = ("rdma.", "pair.")
"""Checks that may work nowhere in a cluster: an unknown pair counts only if another pair was good."""
_WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.PASSED)


@dataclass(slots=True)
class _Side:
    """Pairs with one kind of result: the text of each pair, and the partners of each node."""

    texts: dict[Pair, str] = field(default_factory=dict)
    _met: dict[NodeName, set[NodeName]] = field(default_factory=dict)

    def add(self, pair: Pair, text: str) -> None:
        self.texts[pair] = text
        for one, other in (pair, pair[::-1]):
            self._met.setdefault(one, set()).add(other)

    def partners(self, node: NodeName) -> list[NodeName]:
        return sorted(self._met.get(node, ()))


@dataclass(slots=True)
class _Check:
    """The pairs of one check, by result: good, bad or unknown."""

    good: _Side = field(default_factory=_Side)
    bad: _Side = field(default_factory=_Side)
    unknown: _Side = field(default_factory=_Side)

    def is_to_blame(self, node: NodeName) -> bool:
        """Return whether the node is at fault for its bad pairs.

        That is so if it was bad with at least two partners, good with fewer, and one of the bad partners was good with
        another node.
        """
        bad = self.bad.partners(node)
        outnumbered = len(bad) > len(self.good.partners(node))
        return len(bad) >= 2 and outnumbered and any(set(self.good.partners(one)) - {node} for one in bad)


@dataclass(frozen=True, slots=True)
class PairView:
    """The pairs of one run by check, with the texts for and against each node that follow from them."""

    checks: dict[str, _Check]

    def blame_texts(self, node: NodeName) -> tuple[str, ...]:
        return tuple(
            _with_partners(name, node, check.bad)
            for name, check in sorted(self.checks.items())
            if check.is_to_blame(node)
        )

    def doubt_texts(self, node: NodeName) -> tuple[str, ...]:
        """Return the texts of the node's bad pairs with no end to blame, and of unknown ones if it has no good one."""
        found = []
        for name, check in sorted(self.checks.items()):
            unexplained = [one for one in check.bad.partners(node) if not check.is_to_blame(one)]
            if unexplained and not check.is_to_blame(node):
                told = _with_partners(name, node, check.bad, unexplained)
                found.append(f"{told}; not enough to tell which node is at fault")
            unknown = check.unknown.partners(node)
            counts = bool(check.good.texts) or not name.startswith(_OPTIONAL)
            if unknown and counts and not check.good.partners(node):
                found.append(_with_partners(name, node, check.unknown))
        return tuple(found)

    def good_texts(self, node: NodeName) -> tuple[str, ...]:
        return tuple(
            _with_partners(name, node, check.good)
            for name, check in sorted(self.checks.items())
            if check.good.partners(node)
        )


def view_pairs(measures: Iterable[Measure], usual: Usual) -> PairView:
    """Return the pairs by check, each with its worst result."""
    # both ends report a pair, and it may be measured twice
    checks: dict[str, dict[Pair, Measure]] = {}
    for one in measures:
        if one.partner is None or one.partner == one.node or one.outcome is Outcome.SKIPPED:
            continue
        worst = checks.setdefault(one.check, {})
        pair = pair_of(one.node, one.partner)
        if pair not in worst or _badness(one) < _badness(worst[pair]):
            worst[pair] = one
    return PairView({name: _by_result(pairs, usual) for name, pairs in checks.items()})


def _badness(measure: Measure) -> tuple[int, float]:
    return _WORST_FIRST.index(measure.outcome), measure.value


def _by_result(pairs: dict[Pair, Measure], usual: Usual) -> _Check:
    check = _Check()
    for pair, one in pairs.items():
        bar = usual.bar(one) if one.outcome is Outcome.PASSED else None
        told = f"{number(one.value)} {one.unit}"
        if one.outcome is Outcome.FAILED:
            check.bad.add(pair, one.text or "failed")
        elif one.outcome is Outcome.UNKNOWN:
            check.unknown.add(pair, one.text or "not measured")
        elif bar is not None and one.value < bar.least:
            check.bad.add(pair, f"{told}, below {bar.text}")
        else:
            check.good.add(pair, told)
    return check


def _with_partners(check: str, node: NodeName, side: _Side, only: list[NodeName] | None = None) -> str:
    partners = side.partners(node) if only is None else only
    shown = ", ".join(f"with {one}: {side.texts[pair_of(node, one)]}" for one in partners[:_SHOWN])
    more = f" and {len(partners) - _SHOWN} more" if len(partners) > _SHOWN else ""
    return f"{check} {shown}{more}"


MAX_WHY = 400
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result of a node; `why` names the numbers behind it."""

    result: DeepResult
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """Texts against a node, without a clear result, and for it."""

    bad: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    good: tuple[str, ...] = ()


def judge(
    nodes: Collection[NodeName],
    kinds: Collection[DeepKind],
    measures: Iterable[Measure],
    *,
    profiles: Mapping[NodeName, str],
    baselines: Mapping[str, Baseline],
) -> dict[NodeName, Judged]:
    """Return the result of each of `nodes`.

    FAILED: the node failed a measure alone, was too slow (`usual.Bars`), or is to blame for bad pairs
    (`_Check.is_to_blame`). INCONCLUSIVE: a measure is missing or unclear, or the node is as slow as most nodes of the
    run, which proves no fault. `profiles` says which nodes are alike; nodes without one share the profile "".
    `baselines` is `memory.baselines`.
    """
    ordered = tuple(sorted(measures, key=_order))
    usual = Usual(profiles=profiles, baselines=baselines).with_run(ordered)
    pairs = view_pairs(ordered, usual)
    shared = _slow_on_most(ordered, usual)
    about: dict[NodeName, list[Measure]] = {}
    for one in ordered:
        for end in {one.node, one.partner or one.node}:
            about.setdefault(end, []).append(one)
    return {node: _judge_node(node, kinds, about.get(node, []), usual, pairs, shared) for node in sorted(nodes)}


def _judge_node(
    node: NodeName,
    kinds: Collection[DeepKind],
    about: list[Measure],
    usual: Usual,
    pairs: PairView,
    shared: frozenset[str],
) -> Judged:
    own = [one for one in about if one.node == node]
    alone = [one for one in own if one.partner is None]
    said = [_judge_measure(one, usual, shared) for one in alone]
    said += [_Texts(bad=pairs.blame_texts(node), unclear=pairs.doubt_texts(node), good=pairs.good_texts(node))]
    missing = _unreported(kinds, about)
    bad = [text for one in said for text in one.bad]
    unclear = [*(text for one in said for text in one.unclear), *missing]
    good = [text for one in said for text in one.good]
    if bad:
        return _with_texts(DeepResult.FAILED, bad)
    if unclear:
        return _with_texts(DeepResult.INCONCLUSIVE, unclear)
    return _with_texts(DeepResult.PASSED, good) if good else _with_texts(DeepResult.SKIPPED, _skips(own))


def _judge_measure(measure: Measure, usual: Usual, shared: frozenset[str]) -> _Texts:
    """Return the judgement of a measure that one node took alone."""
    if measure.outcome is Outcome.FAILED:
        return _Texts(bad=(f"{measure.check}: {measure.text or 'failed'}",))
    if measure.outcome is Outcome.UNKNOWN:
        return _Texts(unclear=(f"{measure.check} could not be measured: {measure.text or 'no answer'}",))
    if measure.outcome is Outcome.SKIPPED:
        return _Texts()
    bar = usual.bar(measure)
    told = f"{measure.check} {number(measure.value)} {measure.unit}"
    if bar is None or measure.value >= bar.least:
        return _Texts(good=(told,))
    low = f"{told} is below {bar.text}"
    if measure.check in NO_PROOF:
        return _Texts(unclear=(f"{low}, which proves no fault",))
    return _Texts(unclear=(f"{low}, as for most nodes of this run",)) if measure.check in shared else _Texts(bad=(low,))


def _slow_on_most(measures: tuple[Measure, ...], usual: Usual) -> frozenset[str]:
    """Return the checks in which more than half of at least `min_nodes` nodes are slow: a common cause."""
    slow: dict[str, list[bool]] = {}
    for one in measures:
        if one.partner is None and one.outcome is Outcome.PASSED and (bar := usual.bar(one)) is not None:
            slow.setdefault(one.check, []).append(one.value < bar.least)
    few = usual.bars.min_nodes
    return frozenset(check for check, those in slow.items() if len(those) >= few and sum(those) * 2 > len(those))


def _unreported(kinds: Collection[DeepKind], measures: list[Measure]) -> list[str]:
    told = {one.kind for one in measures}
    return [f"{kind.value}: nothing was reported" for kind in sorted(kinds, key=lambda k: k.value) if kind not in told]


def _skips(own: list[Measure]) -> list[str]:
    return [f"{one.check} skipped: {one.text or 'nothing to measure'}" for one in own] or ["nothing was measured"]


def _with_texts(result: DeepResult, texts: list[str]) -> Judged:
    shown = list(dict.fromkeys(texts))
    more = f"; and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN and result is not DeepResult.PASSED else ""
    kept = shown if result is DeepResult.PASSED else shown[:_SHOWN]
    return Judged(result=result, why=("; ".join(kept) + more)[:MAX_WHY])


def _order(measure: Measure) -> tuple[str, str, str, str, float, str]:
    """Return the sort key of a measure; nan sorts lowest."""
    value = measure.value if measure.value == measure.value else float("-inf")
    return measure.check, measure.node, measure.partner or "", measure.outcome.value, value, measure.text
