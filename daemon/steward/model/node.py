"""A Slurm node as it was read."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.ids import NodeName
from steward.model.mark import Mark, first_token, parse_mark
from steward.model.witness import Address

_GOING_DOWN = frozenset({"POWER_DOWN", "POWERING_DOWN"})
_NO_POWER = _GOING_DOWN | {"POWERED_DOWN", "POWERING_UP"}
"""POWER_UP alone may stay on a node that is up and serves (adapters/slurm/power.py)."""


class NodeBase(Enum):
    """Slurm's base states. A word we do not know becomes UNKNOWN and is never acted on."""

    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    MIXED = "MIXED"
    DOWN = "DOWN"
    FUTURE = "FUTURE"
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a node is out of service, as Slurm keeps it. `at` is Unix seconds; `user` is a login name."""

    text: str
    user: str = ""
    at: float = 0.0

    def __str__(self) -> str:
        return f'reason "{self.text}" by {self.user or "?"}'

    @property
    def mark(self) -> Mark | None:
        return parse_mark(self.text)

    @property
    def is_slurms_own(self) -> bool:
        """slurmctld wrote it about a silent or rebooted node; no person or tool wants the node left alone."""
        return first_token(self.text) in ("Not responding", "Node unexpectedly rebooted", "ResumeTimeout reached")


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
    memory_mb: int = 0
    gres: str = ""
    boot_time: float | None = None
    slurmd_started: float | None = None
    responding: bool = True
    extra: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def slurmd(self) -> Address:
        """Where its slurmd listens."""
        return Address(host=self.address or self.name, port=self.port)

    @property
    def is_down(self) -> bool:
        return self.base is NodeBase.DOWN

    @property
    def is_drain(self) -> bool:
        """Takes no new job (DRAIN or FAIL flag); jobs may still run on it."""
        return "DRAIN" in self.flags or "FAIL" in self.flags

    @property
    def is_busy(self) -> bool:
        """Jobs run or clean up on it: draining is not drained."""
        return self.base in (NodeBase.ALLOCATED, NodeBase.MIXED) or "COMPLETING" in self.flags

    @property
    def is_schedulable(self) -> bool:
        """Slurm would start a job here now or after those on it end."""
        ready = self.base in (NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED)
        return ready and not self.is_drain and self.responding and "POWERED_DOWN" not in self.flags

    @property
    def is_powered(self) -> bool:
        """False while Slurm has it powered down, and on the way there and back."""
        return not self.flags & _NO_POWER

    @property
    def is_powering_down(self) -> bool:
        """For Slurm's SuspendTimeout: a power-up is lost until then."""
        return bool(self.flags & _GOING_DOWN)

    @property
    def mark(self) -> Mark | None:
        return self.reason.mark if self.reason else None

    @property
    def is_ours(self) -> bool:
        """Out of service by our own mark."""
        return self.mark is not None

    @property
    def is_dynamic(self) -> bool:
        """Whether the node registered itself: slurm.conf does not have it."""
        return "DYNAMIC_NORM" in self.flags

    @property
    def is_unsigned(self) -> bool:
        """Drained without a reason, which Slurm demands from people: a dynamic node that registered itself so, or a
        cloud node whose drain outlived the reason (a power-up of 22.05 clears it)."""
        return self.reason is None and "DRAIN" in self.flags and bool(self.flags & {"DYNAMIC_NORM", "CLOUD"})

    @property
    def is_foreign(self) -> bool:
        """Taken out of service by somebody who is not us: hands off. Slurm's own `Not responding` is nobody's."""
        if self.mark is not None or self.is_unsigned:
            return False
        return self.is_drain or (self.is_down and self.reason is not None and not self.reason.is_slurms_own)
