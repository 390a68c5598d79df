"""The progress of the training, generation by generation, and the cost of a change of size. Pure."""

from collections import deque

_SAVES_KEPT = 5


class Steps:
    """The steps that the processes of a generation reported, and how long saves took."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None
        self._last_generation: tuple[int, float] | None = None
        self._saves = deque[float](maxlen=_SAVES_KEPT)
        self.again: int | None = None
        """How many steps the present generation repeats of the last one; None if unknown."""
        self.again_s: float | None = None
        """How long the repeated steps took the first time; None if unknown."""

    @property
    def slowest_s(self) -> float:
        """The longest of the last saves, from the order until all had saved (s); 0 without a save."""
        return max(self._saves, default=0.0)

    def saved(self, took_s: float) -> None:
        self._saves.append(took_s)

    def saw(self, step: int | None, now: float) -> None:
        """Note that a process made a step, or saved after the step."""
        if step is None:
            return
        if self._first is None:
            self._first = (step, now)
            self._count_repeated(step)
        if self._last is None or step > self._last[0]:
            self._last = (step, now)

    def stopped(self, *, saved: int | None) -> None:
        """Note that the generation's processes are stopped; `saved` is the step after which all had saved."""
        if self._first is not None and self._last is not None:
            steps = self._last[0] - self._first[0]
            self._last_generation = (self._last[0], (self._last[1] - self._first[1]) / steps if steps else 0.0)
        self._first = self._last = None
        self.again, self.again_s = (None, None) if saved is None else (0, 0.0)

    def _count_repeated(self, first: int) -> None:
        if self._last_generation is not None:
            reached, each_s = self._last_generation
            self.again = max(reached - max(first - 1, 0), 0)
            self.again_s = self.again * each_s
            self._last_generation = None
