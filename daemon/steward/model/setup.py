"""Lifecycle scripts: what runs on a new machine before its node may take work, and how far it came."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Where a group's scripts come from (`file://`, `https://`, `s3://`) and which of them run, in this order.

    `sha256` (hex) is the digest of the whole folder as the runner computes it; empty: not checked.
    """

    source: str = ""
    on_create: str = ""
    on_init_complete: str = ""
    sha256: str = ""

    @property
    def has_scripts(self) -> bool:
        return bool(self.source and (self.on_create or self.on_init_complete))


class SetupState(Enum):
    """RUNNING is told as soon as it begins; the other two are final for their token."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupReport:
    """What an agent says of the setup that was ordered with `token`. `step` is the script or phase it is in.

    `lines` are the last ones of its output: hostile text, bounded. `exit_status` is None where no script ended.
    """

    token: str
    state: SetupState
    step: str = ""
    exit_status: int | None = None
    why: str = ""
    lines: tuple[str, ...] = ()
    at: float = 0.0
