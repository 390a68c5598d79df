"""Slurm's generic resources (GRES), read from all of Slurm's spellings (22.05 to 26.05).

slurm.conf has `NAME[:TYPE][:no_consume][:COUNT]`, as in `gpu:a100:4` or `bandwidth:lustre:no_consume:4G`. Slurm adds
places to what a node has, `gpu:a100:4(S:0-1)`, and to what is in use, `gpu:(null):2(IDX:0,3)` and `shard:2(1/8,1/8)`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_PLACES = re.compile(r"\((?!null\))[^()]*\)")
_COUNT = re.compile(r"(?P<digits>[0-9]{1,18})(?P<unit>[KMGTPkmgtp]?)")
_NO_TYPE = ("no_consume", "(null)")


class Gres(NamedTuple):
    """One entry; `type` is empty if the entry has none."""

    name: str
    type: str
    amount: int

    def __str__(self) -> str:
        return ":".join(filter(None, (self.name, self.type, str(self.amount))))


@lru_cache(maxsize=4096)
def parse_gres(text: str) -> tuple[Gres, ...]:
    """Return the entries of the text, without unreadable ones."""
    return tuple(_entries(_PLACES.sub("", text)))


def gpus_of(text: str) -> tuple[Gres, ...]:
    """Return the entries that are GPUs."""
    return tuple(each for each in parse_gres(text) if each.name == "gpu")


def _entries(text: str) -> Iterator[Gres]:
    for word in text.split(","):
        name, *rest = word.strip().split(":")
        found = _COUNT.fullmatch(rest[-1]) if rest else None
        count = int(found["digits"]) << 10 * " KMGTP".index(found["unit"].upper() or " ") if found else 1
        types = [part for part in (rest[:-1] if found else rest) if part not in _NO_TYPE]
        # Slurm refuses a count that is not a number, and takes a type without a count for one
        is_counted = found or not rest or not rest[-1][:1].isdecimal()
        if _NAME.fullmatch(name) and all(types) and is_counted:
            yield Gres(name, types[0] if types else "", count)
