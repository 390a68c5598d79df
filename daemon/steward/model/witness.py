"""A second look at a silent node: is a live slurmd behind its port?"""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import NodeName


class Witness(Enum):
    """The result of a second look at a silent node's slurmd port."""

    ALIVE = "alive"
    """slurmd answered or closed our connection: a live process is behind the port."""
    REFUSED = "refused"
    """The host answered that nobody listens."""
    UNANSWERED = "unanswered"
    """The host is there, and nothing answers behind the port: slurmd is frozen, or more connections than it serves are
    open, which any user can bring about. No witness against a node whose agent's connection ended."""
    SILENT = "silent"
    """No answer of the host: it is cut off or dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a node's slurmd listens."""

    host: str
    """A host's name, or its IP address."""
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessSeen:
    result: Witness
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerWord:
    """The result of a look at a silent node's slurmd port by the agent of another node; `at` is when the head heard of
    it."""

    by: NodeName
    result: Witness
    at: float
