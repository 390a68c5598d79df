"""How long the cycle rests between two turns: bells that never stop must not take a whole core.

The turns of one recovery do not wait for each other.
"""

SHARE = 0.25
"""Of the time that turns take."""
FREE_S = 0.5
"""So much may be owed: the turns of one recovery follow each other at once."""
LONGEST_S = 0.3


class Rest:
    """A debt: each turn owes a share of its time, and time without a turn pays it. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._owed = 0.0
        self._paid_until: float | None = None

    def after(self, began: float, ended: float) -> float:
        """How long to rest, seconds, after a turn that lasted from `began` to `ended`."""
        idle = 0.0 if self._paid_until is None else began - self._paid_until
        self._owed = max(self._owed - max(idle, 0.0), 0.0) + SHARE * (ended - began)
        self._paid_until = ended
        return min(max(self._owed - FREE_S, 0.0), LONGEST_S)
