"""Lists of node names as every Slurm reads them."""

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(?P<prefix>.*[^0-9])(?P<number>[0-9]{1,9})")


def fold(names: Iterable[str]) -> str:
    """`gpu1-ib,n[1-3,7]`: each name once, sorted. Only digits at the very end of a name are folded: Slurm before 23.11
    reads nothing behind a bracket but a comma."""
    terms: set[str] = set()
    numbered: dict[tuple[str, int], set[int]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault((match["prefix"], _width(match["number"])), set()).add(int(match["number"]))
        else:
            terms.add(name)
    return ",".join(sorted(terms | {_term(*key, sorted(numbers)) for key, numbers in numbered.items()}))


def _width(number: str) -> int:
    """The width of a number with leading zeros; a number without them is at least 1 wide."""
    return len(number) if number.startswith("0") else 1


def _term(prefix: str, width: int, numbers: list[int]) -> str:
    """`numbers` are sorted; one alone needs no bracket."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    inside = ",".join("-".join(str(end).zfill(width) for end in run) for run in runs)
    return f"{prefix}{inside}" if len(numbers) == 1 else f"{prefix}[{inside}]"
