"""How many machines the provider of a test bed has: a file with a number, for tests of what is not to be had."""

from pathlib import Path

from steward.model.instance import Slot
from steward.ports import Retryable


def read_limit(path: Path) -> int | None:
    """None: as many as are asked for."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else 0


def refuse_beyond(limit: int | None, there: int, slot: Slot) -> None:
    """Raises Retryable, as for want of capacity, when the machines that are there are all that can be."""
    if limit is not None and there >= limit:
        kind = f" of {slot.types[0]}" if slot.types else ""
        raise Retryable(f"capacity: no machine{kind} for {slot.node}: there are only {limit} (fault limit-launch)")
