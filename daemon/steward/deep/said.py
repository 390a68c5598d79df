"""Measures of this node, made short."""

import math
from dataclasses import dataclass, replace

from steward.model.deep import Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName


@dataclass(frozen=True, slots=True)
class Here:
    """Makes measures of `node`."""

    node: NodeName

    def good(self, check: str, value: float, unit: str, text: str = "", seconds: float = 0.0) -> Measure:
        return replace(self._said(check, Outcome.PASSED, text, seconds), value=value, unit=unit)

    def bad(self, check: str, text: str, value: float = math.nan, unit: str = "", seconds: float = 0.0) -> Measure:
        return replace(self._said(check, Outcome.FAILED, text, seconds), value=value, unit=unit)

    def unknown(self, check: str, text: str, seconds: float = 0.0) -> Measure:
        return self._said(check, Outcome.UNKNOWN, text, seconds)

    def skipped(self, check: str, text: str) -> Measure:
        return self._said(check, Outcome.SKIPPED, text, 0.0)

    def _said(self, check: str, outcome: Outcome, text: str, seconds: float) -> Measure:
        return Measure(
            check=check, node=self.node, outcome=outcome, value=math.nan, unit="", text=text, seconds=round(seconds, 2)
        )
