"""The verdict of a deep check's measures on each node: passed, failed, or not to be told. Pure; no data, no blame."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from steward.model.deep import Baseline, DeepKind, DeepResult, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.policy.deep.pair_blame import PairView, view_pairs
from steward.policy.deep.usual import NO_PROOF, Bars, Usual, number

MAX_WHY = 400
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One node's result; `why` names the numbers that it rests on."""

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
    bars: Bars | None = None,
) -> dict[NodeName, Judged]:
    """A result for each of `nodes`. `profiles` says which nodes are alike (a missing one is a profile of its own: ""),
    `baselines` is `memory.baselines`.

    FAILED: the runner saw it fail by itself, or it was too slow (deep_usual.Bars), or it failed with two partners and
    more of which one was good elsewhere. Too slow like most others of a run is nobody's fault: INCONCLUSIVE.
    """
    ordered = tuple(sorted(measures, key=_order))
    usual = Usual(profiles=profiles, baselines=baselines, bars=bars or Bars()).with_run(ordered)
    pairs = view_pairs(ordered, usual)
    shared = _shared(ordered, usual)
    about: dict[NodeName, list[Measure]] = {}
    for one in ordered:
        for end in {one.node, one.partner or one.node}:
            about.setdefault(end, []).append(one)
    return {node: _of_node(node, kinds, about.get(node, []), usual, pairs, shared) for node in sorted(nodes)}


def kind_of(measure: Measure) -> DeepKind:
    return DeepKind.CONNECTIVITY if measure.check.partition(".")[0] in _PAIRWISE else DeepKind.STRESS


_PAIRWISE = frozenset({"tcp", "rdma", "pair"})


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
    """The judgement of a measure that one node took alone."""
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
    """Checks in which more than half of four or more nodes are slow: that is the test, or something that they share."""
    slow: dict[str, list[bool]] = {}
    for one in measures:
        if one.partner is None and one.outcome is Outcome.PASSED and (bar := usual.bar(one)) is not None:
            slow.setdefault(one.check, []).append(one.value < bar.least)
    few = usual.bars.min_nodes
    return frozenset(check for check, those in slow.items() if len(those) >= few and sum(those) * 2 > len(those))


def _missing(kinds: Collection[DeepKind], measures: list[Measure]) -> list[str]:
    told = {kind_of(one) for one in measures}
    return [f"{kind.value}: nothing was reported" for kind in sorted(kinds, key=lambda k: k.value) if kind not in told]


def _skips(own: list[Measure]) -> list[str]:
    return [f"{one.check} skipped: {one.text or 'nothing to measure'}" for one in own] or ["nothing was asked"]


def _judged(result: DeepResult, texts: list[str]) -> Judged:
    shown = list(dict.fromkeys(texts))
    more = f"; and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN and result is not DeepResult.PASSED else ""
    kept = shown if result is DeepResult.PASSED else shown[:_SHOWN]
    return Judged(result=result, why=("; ".join(kept) + more)[:MAX_WHY])


def _order(measure: Measure) -> tuple[str, str, str, str, float, str]:
    """nan sorts as if it were lowest."""
    value = measure.value if measure.value == measure.value else float("-inf")
    return measure.check, measure.node, measure.partner or "", measure.outcome.value, value, measure.text
