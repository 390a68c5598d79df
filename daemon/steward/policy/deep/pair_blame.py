"""Whose fault a bad pair is. A node is blamed only when others' results leave no other reading. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from steward.model.deep import Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.policy.deep.pairs import Pair, pair_of
from steward.policy.deep.usual import Usual, number

_SHOWN = 3
_OPTIONAL = ("rdma.", "pair.")
"""Tools that may not work anywhere in a cluster: what they could not measure counts only where others could."""
_WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.PASSED)


@dataclass(slots=True)
class _Side:
    """Pairs with a text each, and who met whom in them."""

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
    """The pairs of one check: what is good, bad (with why), and not known."""

    good: _Side = field(default_factory=_Side)
    bad: _Side = field(default_factory=_Side)
    unknown: _Side = field(default_factory=_Side)

    def is_to_blame(self, node: NodeName) -> bool:
        """Bad with two distinct partners or more, more often than good, and one of them was good with somebody else."""
        bad = self.bad.partners(node)
        outnumbered = len(bad) > len(self.good.partners(node))
        return len(bad) >= 2 and outnumbered and any(set(self.good.partners(one)) - {node} for one in bad)


@dataclass(frozen=True, slots=True)
class PairView:
    """The blame that the pairs of one run lay on a node, as texts; empty where they say nothing."""

    checks: dict[str, _Check]

    def blame(self, node: NodeName) -> tuple[str, ...]:
        return tuple(
            _with_partners(name, node, check.bad)
            for name, check in sorted(self.checks.items())
            if check.is_to_blame(node)
        )

    def doubt(self, node: NodeName) -> tuple[str, ...]:
        """Bad pairs that are not laid at a partner's door, and what could not be measured."""
        found = []
        for name, check in sorted(self.checks.items()):
            unexplained = [one for one in check.bad.partners(node) if not check.is_to_blame(one)]
            if unexplained and not check.is_to_blame(node):
                told = _with_partners(name, node, check.bad, unexplained)
                found.append(f"{told}; not enough to tell whose fault")
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
    """Both ends tell of a pair, and a pair may be measured twice: its worst result counts."""
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
