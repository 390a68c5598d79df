"""Lifecycle scripts, which run on a new machine before its node may take jobs, and the reports on them."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from steward.model.bounds import Called, Last, MaxLen, Printable, Range, Token

MAX_LINES = 20
MAX_LINE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """The source of a group's scripts (`file://`, `https://`, `s3://`), and the scripts to run, in this order.

    `sha256` (hex) is the digest of the whole folder as the runner computes it; empty: not checked.
    """

    source: Annotated[str, MaxLen(2048)] = ""
    on_create: Annotated[str, MaxLen(512)] = ""
    on_init_complete: Annotated[str, MaxLen(512)] = ""
    sha256: Annotated[str, MaxLen(64)] = ""

    @property
    def has_scripts(self) -> bool:
        """Return whether there is a script to run."""
        return bool(self.source and (self.on_create or self.on_init_complete))


class SetupState(Enum):
    """The state of a setup: RUNNING from its start; the other two are final for their token."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupReport:
    """An agent's report on the setup that was ordered with `token`; `step` is its current script or phase.

    `lines` are the last lines of its output: hostile text, bounded. `exit_status` is None if no script has ended.
    """

    token: Token
    state: SetupState
    step: Annotated[str, Printable(64)] = ""
    exit_status: Annotated[int | None, Range(-255, 255)] = None
    why: Annotated[str, Printable(400)] = ""
    lines: Annotated[tuple[Annotated[str, Printable(MAX_LINE), Called("line")], ...], Last(MAX_LINES)] = ()
    at: float = 0.0
