"""Waiting for a sentence to become true."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from steward.ports import PortError
from steward.testbed.bed import BedError

T = TypeVar("T")
_MOST = 10
"""Times the given time that something may take which moves on."""


_PRESSURE = Path("/proc/pressure/cpu")
_LEAST = 0.2
"""So much of a second counts where others wait for a processor all the time."""
_SHORTEST_S, _LONGEST_S = 0.05, 0.2
"""Between two looks. Most are a command of Slurm: looks of many waits at once would keep a small machine busy."""


def calm(pressure: Path = _PRESSURE) -> float:
    """The share of the last ten seconds in which nobody waited for a processor, but a fifth at least; 1 where the
    kernel does not tell (Linux's pressure stall information)."""
    try:
        told = re.match(r"some avg10=([0-9.]+)", pressure.read_text())
    except OSError:
        return 1.0
    return max(_LEAST, 1.0 - float(told[1]) / 100.0) if told else 1.0


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
    share: Callable[[], float] = calm,
) -> T:
    """Look until the answer is true, and return it. The last look begins when the time is over. Without `every_s`, the
    seconds between two looks, these grow with the time waited.

    A look that raises PortError or BedError counts as "not yet". Raises NotInTime after `deadline_s` seconds; its
    message has the last answer or error, and what `seen` tells then. While the answer of `moves` changes, the time
    begins anew: on a busy machine what goes on is late, and not stuck. For the same reason only that part of a second
    counts that `share` tells.
    """
    try:
        return _look_until(sentence, look, bool, deadline_s, every_s, moves, share)
    except NotInTime as error:
        raise error if seen is None else NotInTime(f"{error}\n{seen()}") from None


def wait_until_empty(sentence: str, look: Callable[[], T], deadline_s: float, *, every_s: float | None = None) -> None:
    """The same for what is still missing: the message of NotInTime then lists exactly that."""
    _look_until(sentence, look, lambda answer: not answer, deadline_s, every_s, None, calm)


def _look_until(
    sentence: str,
    look: Callable[[], T],
    good: Callable[[T], bool],
    deadline_s: float,
    every_s: float | None,
    moves: Callable[[], object] | None,
    share: Callable[[], float],
) -> T:
    began = at = time.monotonic()
    spent = moved = 0.0
    before = moves and moves()
    while True:
        if moves is not None and (now := moves()) != before:
            moved, before = min(spent, (_MOST - 1) * deadline_s), now
        is_last = spent - moved >= deadline_s  # before the look: what it sees may be older than its end
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
        passed, at = time.monotonic() - at, time.monotonic()
        spent += passed * share()
