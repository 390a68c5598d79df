"""Whether a check is run, only reported, or drains: the site's word for it or its family, else its own default."""

from collections.abc import Mapping

WORDS = ("off", "report", "drain")


def said_of(check: str, said: Mapping[str, str]) -> str | None:
    """The longest entry that names the check or a family of it (`ib` speaks of `ib.flap`); None: nothing was said."""
    name = check
    while name:
        if name in said:
            return said[name]
        name = name.rpartition(".")[0]
    return None
