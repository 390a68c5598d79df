"""Waiting for a sentence to become true."""

import time
from collections.abc import Callable
from typing import TypeVar

from steward.ports import PortError
from steward.testbed.bed import BedError

T = TypeVar("T")
_MOST = 10
"""Times the given time that something may take which moves on."""


_SHORTEST_S, _LONGEST_S = 0.05, 0.2
"""Between two looks. Most are a command of Slurm: looks of many waits at once would keep a small machine busy."""


def pause_s(waited_s: float) -> float:
    """How long to rest before the next look, for one that waits so long already."""
    return min(_LONGEST_S, max(_SHORTEST_S, 0.1 * waited_s))


class NotInTime(BedError):
    """The sentence did not become true in time; the message says what was seen last."""


def wait_until(
    sentence: str,
    look: Callable[[], T],
    deadline_s: float,
    *,
    every_s: float | None = None,
    seen: Callable[[], object] | None = None,
    moves: Callable[[], object] | None = None,
) -> T:
    """Look until the answer is true, and return it. The last look begins when the time is over. Without `every_s`, the
    seconds between two looks, these grow with the time waited.

    A look that raises PortError or BedError counts as "not yet". Raises NotInTime after `deadline_s` seconds; its
    message has the last answer or error, and what `seen` tells then. While the answer of `moves` changes, the time
    begins anew: on a busy machine what goes on is late, and not stuck.
    """
    try:
        return _look_until(sentence, look, bool, deadline_s, every_s, moves)
    except NotInTime as error:
        raise error if seen is None else NotInTime(f"{error}\n{seen()}") from None


def wait_until_empty(sentence: str, look: Callable[[], T], deadline_s: float, *, every_s: float | None = None) -> None:
    """The same for what is still missing: the message of NotInTime then lists exactly that."""
    _look_until(sentence, look, lambda answer: not answer, deadline_s, every_s, None)


def _look_until(
    sentence: str,
    look: Callable[[], T],
    good: Callable[[T], bool],
    deadline_s: float,
    every_s: float | None,
    moves: Callable[[], object] | None,
) -> T:
    began = time.monotonic()
    deadline, before = began + deadline_s, moves and moves()
    while True:
        if moves is not None and (now := moves()) != before:
            deadline, before = min(time.monotonic(), began + (_MOST - 1) * deadline_s) + deadline_s, now
        is_last = time.monotonic() >= deadline  # before the look: what it sees may be older than its end
        try:
            answer = look()
            if good(answer):
                return answer
            last = repr(answer)
        except (PortError, BedError) as error:
            last = str(error)
        if is_last:
            raise NotInTime(f"not within {deadline_s:g} s: {sentence}; last seen: {last}")
        time.sleep(every_s if every_s is not None else pause_s(time.monotonic() - began))
