"""What is done so that a resumed job gets its places back: nodes that are kept for it, and its turn in the queue."""

from dataclasses import dataclass

from steward.model.ids import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The sound nodes of a job's lost run, kept free for its next one. Times are Unix seconds.

    `restart` is the lost run's. Once a run: what was `freed` is not kept again for the same restart.
    """

    restart: int
    nodes: frozenset[NodeName]
    since: float
    until: float
    freed: float | None = None
    why: str = ""
    """Why it was freed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A job that was put before others, once a resume: `before` is its own nice value, `nice` what we set at `at`.

    `restored`: its own value is asked for again, because it runs or had its time.
    """

    restart: int
    before: int
    nice: int
    at: float
    restored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """Hot spares that were let out for a job at `at` (Unix s), until it runs or had its time."""

    restart: int
    nodes: frozenset[NodeName]
    at: float
