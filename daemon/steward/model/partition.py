"""A Slurm partition, and the gate of a partition whose state Steward sets."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import NodeName, UnixTime

_RESERVED = frozenset({"ALL", "DEFAULT"})


def is_reserved(name: str) -> bool:
    """Return whether Slurm reserves this name, in any case of letters: no partition or its group may have it."""
    return name.upper() in _RESERVED


class PartitionState(Enum):
    """Slurm's states of a partition: UP starts jobs, DOWN only queues them (a closed gate); running jobs continue."""

    UP = "UP"
    DOWN = "DOWN"
    DRAIN = "DRAIN"
    INACTIVE = "INACTIVE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The names that a partition accepts (AllowQos, AllowAccounts; empty: all) or refuses (DenyQos, DenyAccounts).

    Names are in lower case. Slurm looks at `deny` only if `allow` is empty.
    """

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()

    def refuses(self, name: str) -> bool:
        """Return whether the partition refuses jobs with this name."""
        return name.lower() not in self.allow if self.allow else name.lower() in self.deny


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition as Slurm reports it.

    `loaded` is when slurmctld last started (Unix s; 0: not known) and took the state from its configuration again.
    `qos` and `accounts` say whose jobs the partition accepts; None: not known. `own_qos` is the QOS whose limits apply
    to all its jobs (`QOS=`); empty: none.
    """

    name: str
    state: PartitionState
    nodes: frozenset[NodeName] = frozenset()
    loaded: float = 0.0
    qos: Admission | None = None
    accounts: Admission | None = None
    own_qos: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The state that Steward last set, or is to set, on a partition of its own.

    `yielded` is since when (Unix s) an admin's own setting stands, which Steward leaves until its own wish changes.
    """

    partition: str
    open: bool
    set_at: UnixTime
    confirmed: bool = False
    """Whether Slurm showed the state at least once: a later difference is a person's change (or a restart)."""
    yielded: UnixTime | None = None
    why: str = ""
