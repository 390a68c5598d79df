"""One of torchrun's agents, as the coordinator of its run knows it, and the checks of its (untrusted) messages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_LINE = 64 * 1024
MAX_MEMBERS = 4096
MAX_PROCESSES = 1024
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,255}\Z")
_LARGEST = 1 << 62


@dataclass(slots=True, kw_only=True)
class Peer:
    """A node's agent. `outcome` is how its processes ended (done or failed), until the agent gets its next order."""

    node: str
    agent: str = ""
    """The agent's own id, because several agents may claim the same node."""
    is_base: bool
    is_first: bool
    """Whether the agent is on the base's batch host."""
    processes: int = 1
    generation: int = 0
    """The generation of the agent's processes; 0: it has none."""
    address: str = ""
    port: int = 0
    is_waiting: bool = False
    outcome: str = ""
    is_leaving: bool = False
    noticed: bool = False
    stoppable: bool = False
    """Whether the processes may be stopped at any time."""
    saved: set[int] = field(default_factory=set)
    """The local ranks that saved in this generation."""

    @property
    def is_at_rest(self) -> bool:
        """Whether the agent's processes can be stopped now without loss."""
        return len(self.saved) >= self.processes or (self.outcome == "done" and self.noticed)

    @property
    def order(self) -> tuple[bool, bool, tuple[str | int, ...]]:
        """The sort key of ranks: the batch host first, then the base, then the replicas, each by name."""
        parts = tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", self.node))
        return not self.is_first, not self.is_base, parts

    def forget_generation(self) -> None:
        """Forget what the agent's processes reported; they are stopped."""
        self.saved.clear()
        self.noticed, self.stoppable, self.outcome = False, False, ""


def in_order(peers: Iterable[Peer]) -> list[Peer]:
    """Return the peers by rank."""
    return sorted(peers, key=lambda peer: peer.order)


def fitting(peers: Iterable[Peer], base: int, sizes: tuple[int, ...]) -> tuple[str, ...]:
    """Return the nodes for the largest allowed size, the base's before replicas; empty if no run is possible."""
    # Replicas alone are no run: their base is at its end, and may start again elsewhere.
    ranked = in_order(peers)
    if len(ranked) < base or not any(peer.is_base for peer in ranked):
        return ()
    most = max((size for size in sizes if size <= len(ranked)), default=0) if sizes else len(ranked)
    return tuple(peer.node for peer in ranked[:most])


class BadWord(ValueError):
    """A line that no agent may send."""


def node_of(words: Mapping[str, Any], key: str = "node") -> str:
    value = words.get(key)
    if not isinstance(value, str) or not _NODE.match(value):
        raise BadWord(f"{key} is not the name of a node")
    return value


def nodes_of(words: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the node names in their order, each once. Raises BadWord."""
    value = words.get(key, [])
    if not isinstance(value, list) or len(value) > MAX_MEMBERS:
        raise BadWord(f"{key} is not a list of node names")
    return tuple(dict.fromkeys(node_of({key: one}, key) for one in value))


def int_of(words: Mapping[str, Any], key: str, *, high: int = _LARGEST, default: int = 0) -> int:
    value = words.get(key, default)
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
        raise BadWord(f"{key} is not a whole number from 0 to {high}")
    return value


def optional_int_of(words: Mapping[str, Any], key: str) -> int | None:
    return None if words.get(key) is None else int_of(words, key)


def address_of(words: Mapping[str, Any]) -> str:
    value = words.get("address")
    if not isinstance(value, str) or not _ADDRESS.match(value):
        raise BadWord("address is not a host name or an IP address")
    return value


def peer_of(words: Mapping[str, Any]) -> Peer:
    """Return the peer that an agent's first line describes. Raises BadWord."""
    return Peer(
        node=node_of(words),
        agent=str(words.get("agent", ""))[:64],
        is_base=words.get("role") == "base",
        is_first=words.get("role") == "base" and words.get("first") is True,
        generation=int_of(words, "generation", high=1 << 31),
        is_leaving=words.get("leaves") is True,
    )
