"""The bounds of a field that comes from another machine, stated once: on the field, in `Annotated`.

The codec (`adapters/wire/codec.py`) holds them, of frames and of the shim's lines alike: what an agent takes from a
user is what the head takes from the agent. A text is printable ASCII on one line. Where no bound stands, it has at most
128 characters, and a whole number is not below 0.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from steward.model.ids import JobId, NodeName


@dataclass(frozen=True, slots=True)
class MaxLen:
    """The greatest length of a text (characters) or of a list (entries). A longer one is refused."""

    limit: int


@dataclass(frozen=True, slots=True)
class Printable:
    """A foreign text: made printable and cut where it is longer when it is sent, refused when it comes like that."""

    limit: int


@dataclass(frozen=True, slots=True)
class Uncut:
    """A text that is of no use when it is cut, like a path: sent empty where it is not printable or longer."""

    limit: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Printable ASCII, line feeds and tabs."""

    limit: int


@dataclass(frozen=True, slots=True)
class Free:
    """Any text; what holds it says how long it may be."""


@dataclass(frozen=True, slots=True)
class First:
    """The first entries of a list are sent; a list that is longer is refused when it comes."""

    limit: int


@dataclass(frozen=True, slots=True)
class Last:
    """The last entries of a list are sent; a list that is longer is refused when it comes."""

    limit: int


@dataclass(frozen=True, slots=True)
class Range:
    """A whole number's."""

    low: int = 0
    high: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time that passed: what is out of 0 to `most` is brought into it, null is none."""

    most: float


@dataclass(frozen=True, slots=True)
class Age:
    """A moment, which travels as its age: no two clocks are compared. Sent with so many `digits`; None: with all."""

    least: float = 0.0
    most: float = float("inf")
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A text that the whole of `pattern` fits; `why` says what is wrong with another one."""

    pattern: re.Pattern[str]
    why: str = "is not a name that is allowed here"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text that `parse` understands; its ValueError says why another one is refused. What it makes has its `text`."""

    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Called:
    """The field's name in a frame."""

    key: str


@dataclass(frozen=True, slots=True)
class Sparse:
    """Left out where it is None, empty or 0. One that is absent has the field's default."""


@dataclass(frozen=True, slots=True)
class Newer:
    """A peer of an older version does not send it: the field's default then."""


@dataclass(frozen=True, slots=True)
class Lenient:
    """A value that is neither true nor false counts as false."""


@dataclass(frozen=True, slots=True)
class NanIsNull:
    """No number at all travels as null."""


@dataclass(frozen=True, slots=True)
class Flat:
    """The fields of this record stand among those of its owner."""


@dataclass(frozen=True, slots=True)
class Given:
    """A field that is not in a frame: who reads the frame knows its value, or it has its default."""


_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

Job = Annotated[JobId, Range(1, 2**32 - 1)]
Count = Annotated[int, Range(high=10**6)]
"""The number of restarts, attempts or resumes."""
Uid = Annotated[int, Range(high=2**32 - 1)]
WaitStatus = Annotated[int, Range(high=0xFFFF)]
Node = Annotated[NodeName, MaxLen(64)]
Step = Annotated[str, MaxLen(32), Form(re.compile(r"[A-Za-z0-9._-]{1,32}"), "is not the name of a step")]
Folded = Annotated[str, MaxLen(1024), Form(re.compile(r"[A-Za-z0-9._,\[\]-]*"), "is no list of nodes")]
"""Names of nodes as Slurm writes them: `n[1-3],m7`."""
StepNumber = Annotated[int, Range(high=2**32 - 1)]
Task = Annotated[int, Range(high=2**32 - 1)]
Token = Annotated[str, Form(_TOKEN, "is not made of letters, digits, '.', '_' and '-'")]
"""Fit for the name of a file."""


def is_token(word: str) -> bool:
    return _TOKEN.fullmatch(word) is not None
