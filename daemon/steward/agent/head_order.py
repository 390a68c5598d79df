"""The order in which an agent dials its heads: each at its own pace, the one that is said to lead first."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from steward.adapters.wire.head_messages import FollowerGreeting

FIRST_BACKOFF_S = 0.1
LAST_BACKOFF_S = 5.0
STEADY_S = 5.0
"""A connection that lasted longer ends the series of tries before it."""


@dataclass(slots=True)
class _Pace:
    """How often a head was tried in vain, and when it is due again (seconds of the loop's clock)."""

    tries: int = 0
    due: float = 0.0


class HeadOrder:
    """The pace at which each head is dialled, however many there are.

    A head that was just lost is due after the others: its machine may be gone, and then costs a time limit.
    """

    def __init__(self, heads: Iterable[str], chance: Callable[[], float]) -> None:
        """Take the heads in the order of the settings, and a function that returns a random number below 1."""
        self._paces = {head: _Pace() for head in heads}
        self._chance = chance
        self._leader = ""

    def next(self, now: float) -> tuple[str, float]:
        """Return the head to dial next, and the seconds until then."""

        def place(head: str) -> tuple[float, bool]:
            return max(self._paces[head].due, now), head != self._leader

        head = min(self._paces, key=place)
        return head, max(self._paces[head].due - now, 0.0)

    def ended(self, head: str, now: float, *, lasted_s: float) -> None:
        """Note the end of a connection to this head, or that there was none."""
        was_steady = lasted_s > STEADY_S
        if was_steady:
            self._leader = ""
            for other in self._paces:
                self._paces[other] = _Pace(due=now + FIRST_BACKOFF_S * self._chance() / 2)
        pace = self._paces[head]
        pace.tries = 0 if was_steady else pace.tries + 1
        pace.due = now + backoff_s(pace.tries, self._chance())

    def follows(self, head: str, now: float, word: FollowerGreeting) -> None:
        """Note that this head follows: it says itself when to ask again, and which head to go to until then."""
        self._paces[head] = _Pace(due=now + max(word.again_s, FIRST_BACKOFF_S))
        self._leader = word.leader


def backoff_s(tries: int, chance: float) -> float:
    """Return the wait before the next try: 0.1 s doubled each time, at most 5 s, at random in its upper half."""
    full: float = min(FIRST_BACKOFF_S * 2 ** min(max(tries - 1, 0), 16), LAST_BACKOFF_S)
    return full * (0.5 + chance / 2)
