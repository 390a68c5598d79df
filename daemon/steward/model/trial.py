"""The trial of a check that may change (a site's own): report only until it has shown on some nodes that it is sane."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import NodeName


class TrialState(Enum):
    RUNNING = "on trial"
    """Report only."""
    ARMED = "armed"
    """The check's failures count as the settings say."""
    REFUSED = "refused"
    """The check failed on too many nodes, or a person disarmed it: it only reports until a person arms it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One version (content digest) of one check. Times are Unix seconds.

    `enough` is when results of enough nodes were there for the first time, `usual` the share of nodes on which its
    earlier version failed (None: it has none). `tried` and `failed` are the nodes that had results, and bad ones,
    while it was on trial; `text` tells people how it stands, with the arithmetic.
    """

    check: str
    version: str
    since: float
    state: TrialState = TrialState.RUNNING
    enough: float | None = None
    usual: float | None = None
    tried: frozenset[NodeName] = frozenset()
    failed: frozenset[NodeName] = frozenset()
    share: float | None = None
    """The share of its nodes that failed (0 to 1) when its trial was decided."""
    text: str = ""
