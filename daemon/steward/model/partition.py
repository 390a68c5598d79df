"""A Slurm partition, and the gate that we keep before one that is ours."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import NodeName

_RESERVED = frozenset({"ALL", "DEFAULT"})


def is_reserved(name: str) -> bool:
    """Slurm means something else by this name, in any case of letters: no partition, nor a group behind one, may have
    it."""
    return name.upper() in _RESERVED


class PartitionState(Enum):
    """UP starts jobs; DOWN queues them and starts none (a closed gate); running jobs go on in all of them."""

    UP = "UP"
    DOWN = "DOWN"
    DRAIN = "DRAIN"
    INACTIVE = "INACTIVE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Names that a partition takes (AllowQos, AllowAccounts; none: all of them) or refuses (DenyQos, DenyAccounts), in
    lower case. Slurm looks at the second only where it has none of the first."""

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()

    def refuses(self, name: str) -> bool:
        return name.lower() not in self.allow if self.allow else name.lower() in self.deny


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition as Slurm has it now. `loaded` is when slurmctld last began anew (Unix s; 0: not known): it then takes
    the state from its configuration again, whatever had been set. `qos` and `accounts` are whose jobs it takes; None:
    not known. `own_qos` is the QOS whose limits all its jobs have (`QOS=`); empty: none."""

    name: str
    state: PartitionState
    nodes: frozenset[NodeName] = frozenset()
    loaded: float = 0.0
    qos: Admission | None = None
    accounts: Admission | None = None
    own_qos: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Our last wish for a partition that is ours. `yielded` is since when (Unix s) an admin's own setting stands: he
    changed the state behind us, and we leave it until our own wish changes."""

    partition: str
    open: bool
    set_at: float
    confirmed: bool = False
    """Slurm showed it as we set it at least once: a difference after that is somebody else's doing (or a restart)."""
    yielded: float | None = None
    why: str = ""
