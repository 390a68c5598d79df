"""What is still to happen, in the order of time."""

import heapq
import itertools
import math
from collections.abc import Callable


class Agenda:
    """A clock that moves from one event to the next. Events of the same moment happen in the order of their entry."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Have `call` made at a time; one that is past means at once."""
        heapq.heappush(self._heap, (max(when, self.now), next(self._count), call))

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Have `call` made in so many seconds."""
        self.at(self.now + seconds, call)

    @property
    def next_at(self) -> float:
        """Return the time of the next event; infinity if there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def move(self, until: float) -> None:
        """Move the clock to `until`, and make all calls that are due by then."""
        while self._heap and self._heap[0][0] <= until:
            when, _, call = heapq.heappop(self._heap)
            self.now = when
            call()
        self.now = until
