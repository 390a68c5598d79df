"""Lists of node names: written so that every Slurm version reads them, and read as Slurm does."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from steward.model.ids import NodeName

MAX_RANGE = 65536
"""The longest range in Slurm's own host lists; a longer range is not from Slurm, and could exhaust the memory."""
MAX_NAMES = 1 << 20
MAX_NODES = 100_000
"""The most nodes of a list that a person or the settings name."""
_NODE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$")
_PIECE = re.compile(r"(?P<text>[^\[\],\s]+)|\[(?P<ranges>[0-9,-]+)\]|(?P<gap>[,\s]+)")
_RANGE = re.compile(r"(?P<first>[0-9]{1,18})(?:-(?P<last>[0-9]{0,18}))?")
_NUMBERED = re.compile(r"(?P<prefix>.*[^0-9])(?P<number>[0-9]{1,9})")


def fold(names: Iterable[str]) -> str:
    """Return the names as one list such as `gpu1-ib,n[1-3,7]`: each name once, sorted.

    Folds only digits at the very end of a name, because Slurm before 23.11 reads only a comma after a bracket.
    """
    terms: set[str] = set()
    numbered: dict[tuple[str, int], set[int]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault((match["prefix"], _width(match["number"])), set()).add(int(match["number"]))
        else:
            terms.add(name)
    return ",".join(sorted(terms | {_term(*key, sorted(numbers)) for key, numbers in numbered.items()}))


def _width(number: str) -> int:
    """Return the width of a number with leading zeros; 1 for a number without them."""
    return len(number) if number.startswith("0") else 1


def _term(prefix: str, width: int, numbers: list[int]) -> str:
    """Return the list term of a prefix and its sorted numbers; a single number has no bracket."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    inside = ",".join("-".join(str(end).zfill(width) for end in run) for run in runs)
    return f"{prefix}{inside}" if len(numbers) == 1 else f"{prefix}[{inside}]"


def unfold(text: str, most: int = MAX_NAMES) -> tuple[str, ...]:
    """Return the names in a list such as `gpu1-ib,n[1-3,7]` in their order, each once.

    Slurm takes commas and blanks between names, in any number (`n1,`, `n1,,n2`, `n1 n2`). A number in brackets has the
    width of the first one of its range, whatever stands before the bracket: `b1[9-11]` is b19, b110 and b111. Raises
    ValueError if the text is no list, or a list of more than `most` names.
    """
    found: dict[str, None] = {}
    for term in _terms(text, most):
        found.update(dict.fromkeys(map("".join, itertools.product(*term))))
        if len(found) > most:
            raise ValueError(f"more than {most} nodes")
    return tuple(found)


def _terms(text: str, most: int) -> Iterator[list[Sequence[str]]]:
    """Yield the parts of each term of the list, each part as its alternatives."""
    term: list[Sequence[str]] = []
    size, at = 1, 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError(f"nothing in a list begins with {text[at : at + 20]!r}")
        at = piece.end()
        if piece["gap"]:
            yield from [term] if term else []
            term, size = [], 1
        else:
            term.append((piece["text"],) if piece["text"] else _numbers(piece["ranges"]))
            size *= len(term[-1])
        if size > most:
            raise ValueError(f"more than {most} nodes")
    yield from [term] if term else []


def _numbers(ranges: str) -> list[str]:
    found: list[str] = []
    for text in ranges.split(","):
        one = _RANGE.fullmatch(text)
        first, last = (int(one["first"]), int(one["last"] or one["first"])) if one else (1, 0)
        if one is None or last < first:
            raise ValueError(f"{text!r} is no range of numbers")
        if last - first >= MAX_RANGE:
            raise ValueError(f"a range of more than {MAX_RANGE} nodes")
        found.extend(str(number).zfill(len(one["first"])) for number in range(first, last + 1))
        if len(found) > MAX_NAMES:
            raise ValueError(f"more than {MAX_NAMES} nodes")
    return found


def expand_nodes(text: str) -> tuple[NodeName, ...]:
    """Return the node names of a Slurm host list such as `n[1-6]`, in order. Raises ValueError for anything else."""
    try:
        nodes = tuple(map(NodeName, unfold(text)))
    except ValueError as error:
        raise ValueError(f"not a host list ({error}); write for example n[1-6] or gpu1,gpu[3-8]") from error
    if len(nodes) > MAX_NODES:
        raise ValueError(f"{len(nodes)} nodes are more than {MAX_NODES}; write a shorter range")
    if wrong := next((name for name in nodes if not _NODE.match(name)), None):
        raise ValueError(f"{wrong!r} is not a node name; write for example n[1-6] or gpu1,gpu[3-8]")
    return nodes
