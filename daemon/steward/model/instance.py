"""Machines behind nodes, as a provider lists them."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import InstanceId, NodeName


class InstanceState(Enum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One incarnation. `token` is the client token it was launched with; `launched` is Unix seconds."""

    id: InstanceId
    node: NodeName
    state: InstanceState
    token: str = ""
    launched: float = 0.0
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place in a group that keeps its node name while instances change."""

    node: NodeName
    group: str
