"""What checks find on a node."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import BootId, InstanceId


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Severity(Enum):
    """FATAL acts now; DEGRADED drains and waits for the job's end; SUSPECT and INFO never act on their own."""

    INFO = "info"
    SUSPECT = "suspect"
    DEGRADED = "degraded"
    FATAL = "fatal"


class Advice(Enum):
    """The first rung of the repair ladder that the finding asks for."""

    NONE = "none"
    RESTART_SERVICE = "restart_service"
    RESET_GPU = "reset_gpu"
    REBOOT = "reboot"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """Which machine, and which boot of it, stands behind a node. A verdict dies with it."""

    instance: InstanceId
    boot: BootId


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The judgement of one check. `text` is hostile: bounded, printable, never evaluated. `at` is Unix seconds.

    `event` findings (a kernel-log line) act at once; state findings need `health.bad_of_last` samples.
    """

    check: str
    outcome: Outcome
    severity: Severity = Severity.INFO
    advice: Advice = Advice.NONE
    text: str = ""
    at: float = 0.0
    event: bool = False

    @property
    def is_bad(self) -> bool:
        return self.outcome is Outcome.FAILED
