"""Kinds of faults: how each shows, how long its repair takes, and how often it occurred where it was counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from steward.model.health import Advice, Severity


class FaultSign(Enum):
    """The way in which a fault shows."""

    SILENT = "the machine falls silent"
    FOUND = "a check finds it on the node, and the job fails a little later"
    CRASH = "the job fails, and no node is at fault"
    HANG = "the job stands still until its own watchdog ends it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """A kind of fault. `check`, `severity` and `advice` are those of the finding (steward/checks)."""

    name: str
    sign: FaultSign
    text: str
    check: str = ""
    severity: Severity = Severity.INFO
    advice: Advice = Advice.NONE


_KINDS = (
    FaultKind(
        name="gpu",
        sign=FaultSign.FOUND,
        text="a GPU fails (Xid 79)",
        check="kernel_log.xid79",
        severity=Severity.FATAL,
        advice=Advice.REBOOT,
    ),
    FaultKind(
        name="gpu-memory",
        sign=FaultSign.FOUND,
        text="memory of a GPU fails (Xid 95)",
        check="kernel_log.xid95",
        severity=Severity.FATAL,
        advice=Advice.RESET_GPU,
    ),
    FaultKind(
        name="link",
        sign=FaultSign.FOUND,
        text="a port or a cable of a node fails",
        check="ib.state",
        severity=Severity.DEGRADED,
        advice=Advice.REBOOT,
    ),
    FaultKind(name="machine", sign=FaultSign.SILENT, text="a machine dies"),
    FaultKind(name="maintenance", sign=FaultSign.SILENT, text="a host is taken away for a while"),
    FaultKind(name="software", sign=FaultSign.CRASH, text="the job's program fails by itself"),
    FaultKind(name="hang", sign=FaultSign.HANG, text="the job's tasks wait for each other"),
)
KINDS: Mapping[str, FaultKind] = MappingProxyType({each.name: each for each in _KINDS})

LLAMA3: Mapping[str, int] = MappingProxyType(
    {
        "gpu": 148 + 17 + 6,
        "gpu-memory": 72 + 19,
        "link": 35 + 7,
        "machine": 3 + 3 + 2 + 2 + 2 + 2,
        "maintenance": 32,
        "software": 54 + 2 + 6,
        "hang": 7,
    }
)
"""Unplanned interruptions of Llama 3's 54 days by kind (The Llama 3 Herd of Models, table 5): GPU, its system processor
and sensors; HBM3 and SRAM; network and NIC; SSD, power supply, chassis, IO board, CPU, memory; host maintenance;
software, external dependencies and silent corruption; NCCL's watchdog. 419 in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEvent:
    """One fault, with all that chance decides about it, so that each policy meets the same one.

    `at` is seconds from the begin. `pick` (0 to 1) chooses its node among those that it can hit, unless `node` is its
    number; `phase` (0 to 1) is where between two heartbeats it comes.
    """

    at: float
    kind: FaultKind
    pick: float
    phase: float
    node: int | None = None
    reset_cures: bool = False
    reboot_cures: bool = False
    repair_s: float = 0.0
