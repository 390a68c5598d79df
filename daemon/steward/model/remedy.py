"""The history of a piece of hardware, its repairs and its failures: the ladder's budgets and the lemon score rest on
it."""

from dataclasses import dataclass
from enum import Enum

from steward.model.health import Advice
from steward.model.ids import CaseId, InstanceId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One rung that was begun. Kept under the identity of the piece it was about: a GPU's UUID, the board's serial,
    else the instance id, else the node's name."""

    at: float
    rung: Advice
    node: NodeName
    instance: InstanceId | None
    case: CaseId
    check: str


class Blow(Enum):
    """A sign of a bad machine where nothing was repaired."""

    NODE_FAIL = "node_fail"
    """The node failed under a job of one node."""
    NODE_FAIL_OF_MANY = "node_fail_of_many"
    """The node failed under a job of several nodes."""
    EXCLUDED = "excluded"
    """A user's job avoids it by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    at: float
    blow: Blow
    node: NodeName
