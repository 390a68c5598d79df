"""How long a job usually takes from one step to the next that we hear of."""

HALF_LIFE_S = 4 * 3600.0
FEWEST = 5


class Pace:
    """The longest pause of late: one that was as long as this is nothing to worry about.

    A longer one counts at once and is forgotten slowly, so that the rare long pauses (a checkpoint, an evaluation) are
    still known when the next one comes.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._longest = 0.0
        self._count = 0

    @property
    def longest_s(self) -> float | None:
        """None while there were too few."""
        return self._longest if self._count >= FEWEST else None

    def step(self, at: float) -> None:
        """A step came at `at` (Unix s)."""
        if self._last is not None and at > self._last:
            pause = at - self._last
            self._longest = max(pause, self._longest * 0.5 ** (pause / HALF_LIFE_S))
            self._count += 1
        self._last = at
