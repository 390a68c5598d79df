"""The second look at a silent node: whether a live slurmd is behind its port."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import NodeName


class Witness(Enum):
    """The result of a second look at a silent node's slurmd port."""

    ALIVE = "alive"
    """slurmd answered or closed the connection: a live process is behind the port."""
    REFUSED = "refused"
    """The host refused the connection: no process listens."""
    UNANSWERED = "unanswered"
    """The host is up, but no process answers behind the port: slurmd is frozen, or has too many open connections, which
    any user can cause. No evidence against a node whose agent's connection ended."""
    SILENT = "silent"
    """The host does not answer: it is cut off or dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address at which a node's slurmd listens."""

    host: str
    """A host name or an IP address."""
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessSeen:
    """The result of a second look, and its time (Unix s)."""

    result: Witness
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerWord:
    """The result of a look at a silent node's slurmd by another node's agent; `at` is when the head received it."""

    by: NodeName
    result: Witness
    at: float
