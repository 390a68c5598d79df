"""Hostile text made harmless: bounded and printable. It is shown and stored, never evaluated."""

_SHOWN = 100


def printable(text: str, limit: int) -> str:
    """`text` on one line of printable ASCII, at most `limit` characters; white space becomes a space, the rest `?`."""
    kept = text[: limit + 1]
    if not (kept.isascii() and kept.isprintable()):  # hardly any is not; the head sees millions of names a day
        kept = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in kept)
    return kept if len(kept) <= limit else kept[: max(0, limit - 3)] + "..."


def shown(value: object) -> str:
    """Any value from outside, for one line of a message."""
    try:
        return printable(repr(value), _SHOWN)
    except RecursionError:
        return "something that is nested too deeply"
