"""A Slurm node, as read from Slurm."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.gres import parse_gres
from steward.model.ids import NodeName
from steward.model.mark import Mark, first_token, parse_mark
from steward.model.witness import Address

_GOING_DOWN = frozenset({"POWER_DOWN", "POWERING_DOWN"})
_REFUSED = frozenset({"INVALID_REG", "INVALID"})
_NO_POWER = _GOING_DOWN | {"POWERED_DOWN", "POWERING_UP"}
"""POWER_UP alone may stay on a node that is up and serves (adapters/slurm/power.py)."""


class NodeBase(Enum):
    """Slurm's base states of a node. An unknown word becomes UNKNOWN and is never acted on."""

    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    MIXED = "MIXED"
    DOWN = "DOWN"
    FUTURE = "FUTURE"
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"


_REGISTERED_ANEW = "Node unexpectedly rebooted"
_DOWN_BY_SLURM = ("Not responding", _REGISTERED_ANEW, "ResumeTimeout reached", "reboot timed out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why a node is out of service, as Slurm keeps it. `at` is Unix seconds; `user` is a login name."""

    text: str
    user: str = ""
    at: float = 0.0

    def __str__(self) -> str:
        return f'reason "{self.text}" by {self.user or "?"}'

    @property
    def mark(self) -> Mark | None:
        """Return Steward's mark in the reason; None if the reason is not Steward's."""
        return parse_mark(self.text)

    @property
    def is_slurms_own(self) -> bool:
        """Return whether slurmctld set the node DOWN with this reason, and no person or tool did."""
        return first_token(self.text) in _DOWN_BY_SLURM

    @property
    def tells_absence(self) -> bool:
        """Return whether slurmctld set the node DOWN because its slurmd did not answer or register in time."""
        return self.is_slurms_own and first_token(self.text) != _REGISTERED_ANEW


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What slurm.conf says that a node has; its GRES without the places that slurmd adds."""

    cpus: int = 0
    memory_mb: int = 0
    gres: str = ""

    def __str__(self) -> str:
        return f"CPUs={self.cpus} RealMemory={self.memory_mb} Gres={self.gres or '(null)'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. `flags` are Slurm's state flags in upper case, unknown ones included (`DRAIN`, `FAIL`, ...)."""

    name: NodeName
    base: NodeBase
    flags: frozenset[str] = frozenset()
    reason: Reason | None = None
    partitions: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    active_features: frozenset[str] = frozenset()
    address: str = ""
    port: int = 6818
    cpus: int = 0
    threads: int = 1
    """How many of its CPUs are one core: Slurm gives a job whole cores."""
    memory_mb: int = 0
    gres: str = ""
    boot_time: float | None = None
    slurmd_started: float | None = None
    responding: bool = True
    extra: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def size(self) -> Size:
        """Return what slurm.conf says that the node has."""
        return Size(cpus=self.cpus, memory_mb=self.memory_mb, gres=",".join(map(str, parse_gres(self.gres))))

    @property
    def slurmd(self) -> Address:
        """Return the address at which its slurmd listens."""
        return Address(host=self.address or self.name, port=self.port)

    @property
    def is_down(self) -> bool:
        """Return whether Slurm shows the node DOWN."""
        return self.base is NodeBase.DOWN

    @property
    def is_drain(self) -> bool:
        """Return whether the node takes no new job (DRAIN or FAIL flag); jobs may still run on it."""
        return "DRAIN" in self.flags or "FAIL" in self.flags

    @property
    def is_busy(self) -> bool:
        """Return whether jobs run or clean up on the node (a draining node is not drained yet)."""
        return self.base in (NodeBase.ALLOCATED, NodeBase.MIXED) or "COMPLETING" in self.flags

    @property
    def is_schedulable(self) -> bool:
        """Return whether Slurm would start a job on the node, now or after its jobs end."""
        ready = self.base in (NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED)
        is_up = self.responding and "POWERED_DOWN" not in self.flags
        return ready and is_up and not (self.is_drain or self.is_refused)

    @property
    def is_refused(self) -> bool:
        """Return whether Slurm refuses the node's registration: it has less than slurm.conf says."""
        return not _REFUSED.isdisjoint(self.flags)

    @property
    def is_powered(self) -> bool:
        """Return whether the node is not powered down, nor on the way down or up."""
        return not self.flags & _NO_POWER

    @property
    def is_powering_down(self) -> bool:
        """Return whether Slurm powers the node down; for its SuspendTimeout a power-up would be lost."""
        return bool(self.flags & _GOING_DOWN)

    @property
    def mark(self) -> Mark | None:
        """Return Steward's mark in the node's reason; None if there is none."""
        return self.reason.mark if self.reason else None

    @property
    def is_ours(self) -> bool:
        """Return whether Steward took the node out of service."""
        return self.mark is not None

    @property
    def is_dynamic(self) -> bool:
        """Return whether the node registered itself, so that slurm.conf does not list it."""
        return "DYNAMIC_NORM" in self.flags

    @property
    def is_unsigned(self) -> bool:
        """Return whether the node is drained without a reason, which no person can do.

        A dynamic node may register itself drained, and the drain of a cloud node may outlive its reason (a power-up of
        Slurm 22.05 clears the reason).
        """
        return self.has_lost_reason and bool(self.flags & {"DYNAMIC_NORM", "CLOUD"})

    @property
    def has_lost_reason(self) -> bool:
        """Return whether the node is drained without a reason: by Slurm, or by slurm.conf."""
        return self.reason is None and "DRAIN" in self.flags

    @property
    def is_foreign(self) -> bool:
        """Return whether a person or another tool took the node out of service, so that Steward leaves it alone."""
        if self.mark is not None or self.is_unsigned:
            return False
        return self.is_drain or (self.is_down and self.reason is not None and not self.reason.is_slurms_own)
