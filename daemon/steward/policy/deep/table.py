"""The table of a deep check: (state, fact) -> state."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from steward.model.deep import DeepState
from steward.policy.fact_table import in_order


class DeepFact(Enum):
    """A fact that the picture shows of a deep check. The value is the sentence that events show."""

    CALLED_OFF = "no node is left to check"
    READY = "its nodes are free, and it is its turn"
    YIELDED = "a user's waiting job needs its nodes"
    STARTED = "its job was started"
    REPORTED = "all its nodes reported everything"
    INTERRUPTED = "its job was lost; the check starts again"
    ENDED = "its job is over"
    LATE = "its time is over"


_TABLE: dict[tuple[DeepState, DeepFact], DeepState] = {
    (DeepState.WAITING, DeepFact.CALLED_OFF): DeepState.DONE,
    (DeepState.WAITING, DeepFact.READY): DeepState.RESERVED,
    (DeepState.RESERVED, DeepFact.CALLED_OFF): DeepState.DONE,
    (DeepState.RESERVED, DeepFact.YIELDED): DeepState.WAITING,
    (DeepState.RESERVED, DeepFact.STARTED): DeepState.RUNNING,
    (DeepState.RESERVED, DeepFact.LATE): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.CALLED_OFF): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.REPORTED): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.YIELDED): DeepState.WAITING,
    (DeepState.RUNNING, DeepFact.INTERRUPTED): DeepState.WAITING,
    (DeepState.RUNNING, DeepFact.ENDED): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.LATE): DeepState.DONE,
}
TABLE: Mapping[tuple[DeepState, DeepFact], DeepState] = MappingProxyType(_TABLE)
"""In each state the facts are tried in this order; the first that is true decides."""

facts_of = in_order(_TABLE)
"""The facts that can end a state, the most urgent first."""
