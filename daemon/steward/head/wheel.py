"""Deadlines of very many things with one timer: a thing is looked at when it may be due, not on every sign of life."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Wheel(Generic[T]):
    """Buckets of `tick_s` seconds. Times are monotonic seconds."""

    def __init__(self, now: float, tick_s: float = 0.25) -> None:
        self.tick_s = tick_s
        self._turned = int(now / tick_s)
        self._buckets: dict[int, set[T]] = {}

    def add(self, thing: T, due: float) -> None:
        """`thing` comes out of `turn` within a tick after `due`; what is due already comes out at the next turn."""
        bucket = max(int(due / self.tick_s) + 1, self._turned + 1)
        self._buckets.setdefault(bucket, set()).add(thing)

    def turn(self, now: float) -> list[T]:
        """All that became due since the last turn; each is out of the wheel then."""
        until = int(now / self.tick_s)
        due: list[T] = []
        for bucket in range(self._turned + 1, until + 1):
            due.extend(self._buckets.pop(bucket, ()))
        self._turned = max(until, self._turned)
        return due
