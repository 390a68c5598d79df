"""The parts of the settings file's tables: the table itself, and value types with messages that say what to write.

Where decisions use the keys of a table unchanged, the table is also their policy: each number is declared once, with
its default, its range and its meaning.
"""

import re
from collections.abc import Iterable
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from steward.model.node_names import expand_nodes
from steward.model.resume_mode import ResumeMode

HOUR_S = 3600.0


class Section(BaseModel):
    """A table of the settings: frozen, strict about types, without unknown keys.

    Keys in hours and percent are also properties in seconds and as fractions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    kept = tuple(words)
    if twice := next((word for word in kept if kept.count(word) > 1), None):
        raise ValueError(f"{twice!r} is there twice; write each once")
    return kept


Words = Annotated[tuple[str, ...], AfterValidator(_unique)]

_HOST_PORT = re.compile(r"^(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})$")
SIGNAL_OR_NONE = r"^(?:|[A-Z][A-Z0-9]{1,9})$"
"""The pattern of a signal's name without SIG, for example USR1; empty: no signal."""


class CheckMode(Enum):
    """The possible consequence of a failed check."""

    OFF = "off"
    REPORT = "report"
    DRAIN = "drain"


class RepairMode(Enum):
    """Whether Steward may act on nodes."""

    ACT = "act"
    ASK = "ask"
    REPORT = "report"


class AddressRule(Enum):
    """The rule for an agent's address."""

    AUTO = "auto"
    STRICT = "strict"
    OFF = "off"


class Recovery(Enum):
    """Whether the nodes of a group are repaired automatically, in the words of the API's NodeRecovery."""

    AUTOMATIC = "automatic"
    NONE = "none"


class ProviderKind(StrEnum):
    """The providers of machines that Steward has itself."""

    STATIC = "static"
    COMMAND = "command"
    POWER = "power"
    EC2 = "ec2"


def split_host_port(text: str) -> tuple[str, int]:
    """Split `host:port` or `[v6]:port` into host and port. Raises ValueError that says what to write instead."""
    match = _HOST_PORT.match(text)
    if match is None or not 1 <= int(match["port"]) <= 65535:
        raise ValueError("write HOST:PORT with a port from 1 to 65535, for example head1:6861")
    return match["host"].strip("[]"), int(match["port"])


def _host_port(text: str) -> str:
    split_host_port(text)
    return text


def _node_list(text: str) -> str:
    expand_nodes(text)
    return text


def _some_nodes(text: str) -> str:
    if not expand_nodes(text):
        raise ValueError("names no node; write for example n[1-6]")
    return text


def _times(durations: tuple[float, ...]) -> tuple[float, ...]:
    if not durations or min(durations) <= 0:
        raise ValueError("write at least one time in seconds, each above 0, for example [60, 300]")
    return durations


def _waits(durations: tuple[float, ...]) -> tuple[float, ...]:
    if not durations or min(durations) < 0:
        raise ValueError("write at least one time in seconds, none below 0, for example [0, 60, 300]")
    return durations


def _exit_codes(codes: tuple[int, ...]) -> tuple[int, ...]:
    wrong = next((code for code in codes if not 1 <= code <= 255), None)
    if wrong is not None:
        raise ValueError(f"{wrong} is not the exit code of a failure; write numbers from 1 to 255, like [93, 120]")
    return codes


def _auto_resume(text: str) -> str:
    ResumeMode.parse(text)
    return text


def _for_a_node(argv: tuple[str, ...]) -> tuple[str, ...]:
    if argv and not argv[0].startswith("/"):
        raise ValueError(
            f"{argv[0]!r} is not the path of a program; write it in full, for example /usr/local/sbin/power"
        )
    if argv and not any("%n" in word for word in argv[1:]):
        raise ValueError('no word says which node; write %n where its name goes, for example ["/sbin/power", "%n"]')
    return argv


def _program(argv: tuple[str, ...]) -> tuple[str, ...]:
    if not argv or not argv[0].startswith("/"):
        raise ValueError('begin with the full path of a program, for example ["/usr/local/sbin/machines", "launch"]')
    return argv


def _full_path(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("a daemon may begin in any folder; use a full path, from /")
    return path


FullPath = Annotated[Path, AfterValidator(_full_path)]
HostPort = Annotated[str, AfterValidator(_host_port)]
NodeList = Annotated[str, AfterValidator(_node_list)]
SomeNodes = Annotated[str, AfterValidator(_some_nodes)]
NodeCommand = Annotated[tuple[str, ...], AfterValidator(_for_a_node)]
Durations = Annotated[tuple[float, ...], AfterValidator(_times)]
Waits = Annotated[tuple[float, ...], AfterValidator(_waits)]
ExitCodes = Annotated[tuple[int, ...], AfterValidator(_exit_codes)]
AutoResume = Annotated[str, AfterValidator(_auto_resume)]
ProviderName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Program = Annotated[tuple[str, ...], AfterValidator(_program)]
