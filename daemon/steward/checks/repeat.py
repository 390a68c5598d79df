"""Events that say more when they come again."""

from dataclasses import dataclass

from steward.model.health import Advice, Severity

GAP_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The `times`-th event of this kind about the same thing within `within_s` seconds says more than the first.

    Lines closer than `gap_s` to the last one that counted are the same event.
    """

    times: int
    within_s: float
    severity: Severity
    advice: Advice
    gap_s: float = GAP_S
