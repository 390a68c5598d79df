"""The bounds of a field from another machine, declared once: on the field, in `Annotated`.

The codec (`adapters/codec.py`) enforces them in frames and in the shim's lines alike: an agent accepts from a user
exactly what the head accepts from the agent. A text is printable ASCII on one line. Without a bound, a text has at most
128 characters, and a whole number is not below 0.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from steward.model.ids import JobId, NodeName


@dataclass(frozen=True, slots=True)
class MaxLen:
    """The greatest length of a text (characters) or a list (entries); a longer value is refused."""

    limit: int


@dataclass(frozen=True, slots=True)
class Printable:
    """A foreign text: made printable and cut to the limit when sent; a received text that breaks this is refused."""

    limit: int


@dataclass(frozen=True, slots=True)
class Uncut:
    """A text that is useless when cut, such as a path: sent empty if it is not printable or too long."""

    limit: int


@dataclass(frozen=True, slots=True)
class Lines:
    """A text of printable ASCII, line feeds and tabs."""

    limit: int


@dataclass(frozen=True, slots=True)
class Free:
    """Any text; its container limits the length."""


@dataclass(frozen=True, slots=True)
class First:
    """A list of which the first entries are sent; a longer received list is refused."""

    limit: int


@dataclass(frozen=True, slots=True)
class Last:
    """A list of which the last entries are sent; a longer received list is refused."""

    limit: int


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a whole number."""

    low: int = 0
    high: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Seconds:
    """A duration: a value outside of 0 to `most` is clamped, null is None."""

    most: float


@dataclass(frozen=True, slots=True)
class Age:
    """A time that is sent as its age, so that no two clocks are compared; `digits` after the point, None: all."""

    least: float = 0.0
    most: float = float("inf")
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A text that matches the whole of `pattern`; `why` is the error for any other."""

    pattern: re.Pattern[str]
    why: str = "is not a name that is allowed here"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text that `parse` accepts (its ValueError is the error for any other); the parsed value keeps it as `text`."""

    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Called:
    """The name of the field in a frame."""

    key: str


@dataclass(frozen=True, slots=True)
class Sparse:
    """A field that is omitted if it is None, empty or 0; an absent field has its default.

    While a cluster is upgraded, head and agents of two versions talk to each other: a field that a version adds to a
    frame is sparse.
    """


@dataclass(frozen=True, slots=True)
class Lenient:
    """A truth value of which anything but true and false counts as false."""


@dataclass(frozen=True, slots=True)
class NanIsNull:
    """A number of which NaN is sent as null."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A record whose fields are sent among those of its owner."""


@dataclass(frozen=True, slots=True)
class Given:
    """A field that is not in a frame: the reader knows its value, or it has its default."""


_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

Job = Annotated[JobId, Range(1, 2**32 - 1)]
Count = Annotated[int, Range(high=10**6)]
"""A number of restarts, attempts or resumes."""
Uid = Annotated[int, Range(high=2**32 - 1)]
WaitStatus = Annotated[int, Range(high=0xFFFF)]
Node = Annotated[NodeName, MaxLen(64)]
StepName = Annotated[str, MaxLen(32), Form(re.compile(r"[A-Za-z0-9._-]{1,32}"), "is not the name of a step")]
Folded = Annotated[str, MaxLen(1024), Form(re.compile(r"[A-Za-z0-9._,\[\]-]*"), "is no list of nodes")]
"""A list of nodes as Slurm writes it: `n[1-3],m7`."""
StepNumber = Annotated[int, Range(high=2**32 - 1)]
Task = Annotated[int, Range(high=2**32 - 1)]
Token = Annotated[str, Form(_TOKEN, "is not made of letters, digits, '.', '_' and '-'")]
"""A word that can be a file's name."""
