"""The judgement of a deep check's measures on each node: passed, failed or inconclusive. Pure. No data, no blame."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.deep import Baseline, DeepKind, DeepResult, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.policy.deep.pairs import Pair, pair_of
from steward.policy.deep.usual import NO_PROOF, Usual, number

# The node at fault for a bad pair: blamed only if the other results leave no other explanation.

_OPTIONAL = ("rdma.", "pair.")
"""Tools that may work nowhere in a cluster: a pair that they could not measure counts only if they measured others."""
_WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.PASSED)


@dataclass(slots=True)
class _Side:
    """Pairs with a text each, and the partners of each node in them."""

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
    """The pairs of one check: the good, the bad (with the reason) and the unknown ones."""

    good: _Side = field(default_factory=_Side)
    bad: _Side = field(default_factory=_Side)
    unknown: _Side = field(default_factory=_Side)

    def is_to_blame(self, node: NodeName) -> bool:
        """Return whether the node is at fault.

        The node was bad with at least two partners and with more than it was good with, and one of those partners was
        good with another node.
        """
        bad = self.bad.partners(node)
        outnumbered = len(bad) > len(self.good.partners(node))
        return len(bad) >= 2 and outnumbered and any(set(self.good.partners(one)) - {node} for one in bad)


@dataclass(frozen=True, slots=True)
class PairView:
    """The texts for and against each node that follow from the pairs of one run; empty if they say nothing."""

    checks: dict[str, _Check]

    def blame(self, node: NodeName) -> tuple[str, ...]:
        return tuple(
            _with_partners(name, node, check.bad)
            for name, check in sorted(self.checks.items())
            if check.is_to_blame(node)
        )

    def doubt(self, node: NodeName) -> tuple[str, ...]:
        """Return the node's bad pairs that no partner is to blame for, and those that could not be measured."""
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

    def praise(self, node: NodeName) -> tuple[str, ...]:
        return tuple(
            _with_partners(name, node, check.good)
            for name, check in sorted(self.checks.items())
            if check.good.partners(node)
        )


def view_pairs(measures: Iterable[Measure], usual: Usual) -> PairView:
    """Return the pairs by check, each with its worst result: both ends report, and a pair may be measured twice."""
    checks: dict[str, dict[Pair, Measure]] = {}
    for one in measures:
        if one.partner is None or one.partner == one.node or one.outcome is Outcome.SKIPPED:
            continue
        worst = checks.setdefault(one.check, {})
        pair = pair_of(one.node, one.partner)
        if pair not in worst or _badness(one) < _badness(worst[pair]):
            worst[pair] = one
    return PairView({name: _sort_out(pairs, usual) for name, pairs in checks.items()})


def _badness(measure: Measure) -> tuple[int, float]:
    return _WORST_FIRST.index(measure.outcome), measure.value


def _sort_out(pairs: dict[Pair, Measure], usual: Usual) -> _Check:
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
class _Said:
    """The findings for or against a node so far."""

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

    FAILED: the node failed a measure alone, was too slow (`usual.Bars`), or was bad with at least two partners of which
    one was good elsewhere. INCONCLUSIVE also: as slow as most nodes of the run, which proves no fault. `profiles` says
    which nodes are alike; nodes without one share the profile "". `baselines` is `memory.baselines`.
    """
    ordered = tuple(sorted(measures, key=_order))
    usual = Usual(profiles=profiles, baselines=baselines).with_run(ordered)
    pairs = view_pairs(ordered, usual)
    shared = _shared(ordered, usual)
    about: dict[NodeName, list[Measure]] = {}
    for one in ordered:
        for end in {one.node, one.partner or one.node}:
            about.setdefault(end, []).append(one)
    return {node: _of_node(node, kinds, about.get(node, []), usual, pairs, shared) for node in sorted(nodes)}


def _of_node(
    node: NodeName,
    kinds: Collection[DeepKind],
    about: list[Measure],
    usual: Usual,
    pairs: PairView,
    shared: frozenset[str],
) -> Judged:
    own = [one for one in about if one.node == node]
    alone = [one for one in own if one.partner is None]
    said = [_of_measure(one, usual, shared) for one in alone]
    said += [_Said(bad=pairs.blame(node), unclear=pairs.doubt(node), good=pairs.praise(node))]
    missing = _missing(kinds, about)
    bad = [text for one in said for text in one.bad]
    unclear = [*(text for one in said for text in one.unclear), *missing]
    good = [text for one in said for text in one.good]
    if bad:
        return _judged(DeepResult.FAILED, bad)
    if unclear:
        return _judged(DeepResult.INCONCLUSIVE, unclear)
    return _judged(DeepResult.PASSED, good) if good else _judged(DeepResult.SKIPPED, _skips(own))


def _of_measure(measure: Measure, usual: Usual, shared: frozenset[str]) -> _Said:
    """Return the judgement of a measure that one node took alone."""
    if measure.outcome is Outcome.FAILED:
        return _Said(bad=(f"{measure.check}: {measure.text or 'failed'}",))
    if measure.outcome is Outcome.UNKNOWN:
        return _Said(unclear=(f"{measure.check} could not be measured: {measure.text or 'no answer'}",))
    if measure.outcome is Outcome.SKIPPED:
        return _Said()
    bar = usual.bar(measure)
    told = f"{measure.check} {number(measure.value)} {measure.unit}"
    if bar is None or measure.value >= bar.least:
        return _Said(good=(told,))
    low = f"{told} is below {bar.text}"
    if measure.check in NO_PROOF:
        return _Said(unclear=(f"{low}, which proves no fault",))
    return _Said(unclear=(f"{low}, as for most nodes of this run",)) if measure.check in shared else _Said(bad=(low,))


def _shared(measures: tuple[Measure, ...], usual: Usual) -> frozenset[str]:
    """Return the checks in which more than half of four or more nodes are slow: the cause is shared, or the test's."""
    slow: dict[str, list[bool]] = {}
    for one in measures:
        if one.partner is None and one.outcome is Outcome.PASSED and (bar := usual.bar(one)) is not None:
            slow.setdefault(one.check, []).append(one.value < bar.least)
    few = usual.bars.min_nodes
    return frozenset(check for check, those in slow.items() if len(those) >= few and sum(those) * 2 > len(those))


def _missing(kinds: Collection[DeepKind], measures: list[Measure]) -> list[str]:
    told = {one.kind for one in measures}
    return [f"{kind.value}: nothing was reported" for kind in sorted(kinds, key=lambda k: k.value) if kind not in told]


def _skips(own: list[Measure]) -> list[str]:
    return [f"{one.check} skipped: {one.text or 'nothing to measure'}" for one in own] or ["nothing was measured"]


def _judged(result: DeepResult, texts: list[str]) -> Judged:
    shown = list(dict.fromkeys(texts))
    more = f"; and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN and result is not DeepResult.PASSED else ""
    kept = shown if result is DeepResult.PASSED else shown[:_SHOWN]
    return Judged(result=result, why=("; ".join(kept) + more)[:MAX_WHY])


def _order(measure: Measure) -> tuple[str, str, str, str, float, str]:
    """Return the sort key of a measure; nan sorts lowest."""
    value = measure.value if measure.value == measure.value else float("-inf")
    return measure.check, measure.node, measure.partner or "", measure.outcome.value, value, measure.text
