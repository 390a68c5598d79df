"""The value types of the settings, with messages that say what to write, and how a table declares a key.

Agents load this, so it does without pydantic.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from steward.model.node_names import expand_nodes
from steward.model.resume_mode import ResumeMode

HOUR_S = 3600.0
T = TypeVar("T")


def setting(default: T, description: str, **limits: float) -> T:
    """Declare a key in a dataclass that is a table.

    `limits`: `ge`, `gt` and `le` of a number, `min_length` and `max_length` of a text.
    """
    return field(default=default, metadata={"description": description, **limits})


def range_words(limits: Mapping[str, float]) -> str:
    """Return a range as `from 0 to 60` or `above 0, up to 100`; empty without limits."""
    low = f"above {limits['gt']:.15g}" if "gt" in limits else f"from {limits['ge']:.15g}" if "ge" in limits else ""
    high = f"to {limits['le']:.15g}" if "le" in limits else ""
    return f"{low}, up {high}" if "gt" in limits and high else f"{low} {high}".strip()


@dataclass(frozen=True, slots=True)
class Checked:
    """A rule for the values of a type. `rule` returns the value, or raises ValueError that says what to write."""

    rule: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Have pydantic apply the rule where the head reads the settings."""
        from pydantic_core import core_schema  # noqa: PLC0415  # an agent never loads it

        return core_schema.no_info_after_validator_function(self.rule, handler(source))


@dataclass(frozen=True, slots=True)
class WrittenAs:
    """A value that the file may write in more than one way.

    `read` returns the value from what the file has, or raises ValueError that says what to write.
    """

    read: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Have pydantic read the value where the head reads the settings."""
        from pydantic_core import core_schema  # noqa: PLC0415  # an agent never loads it

        return core_schema.no_info_before_validator_function(self.read, handler(source))


def problems_of(table: Any) -> Iterator[tuple[str, str]]:
    """Yield each key of a table whose value breaks its declaration, with what to write instead."""
    hints = get_type_hints(type(table), include_extras=True)
    for one in fields(table):
        value, limits = getattr(table, one.name), one.metadata
        if not _is_within(value, limits):
            yield one.name, f"use a number {range_words(limits)}" if range_words(limits) else "use another length"
        for rule in _rules(hints[one.name]) if value is not None else ():
            try:
                rule(value)
            except ValueError as error:
                yield one.name, str(error)


def _is_within(value: Any, limits: Mapping[str, float]) -> bool:
    if isinstance(value, str):
        return limits.get("min_length", 0) <= len(value) <= limits.get("max_length", len(value))
    if isinstance(value, int | float):
        return limits.get("ge", value) <= value <= limits.get("le", value) and value > limits.get("gt", -math.inf)
    return True


def _rules(hint: Any) -> list[Callable[[Any], Any]]:
    """Return the rules of `Annotated[...]`, or of `Annotated[...] | None`."""
    marks = (mark for part in (hint, *get_args(hint)) for mark in getattr(part, "__metadata__", ()))
    return [mark.rule for mark in marks if isinstance(mark, Checked)]


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    kept = tuple(words)
    if twice := next((word for word in kept if kept.count(word) > 1), None):
        raise ValueError(f"{twice!r} is there twice; write each once")
    return kept


Words = Annotated[tuple[str, ...], Checked(_unique)]

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


MOST_HEADS = 4
_ONE_OR_MORE = 'write HOST:PORT, or a list of them where there are two heads, like ["head1:6861", "head2:6861"]'


def head_addresses(written: object) -> tuple[str, ...]:
    """Return the heads' addresses from what the settings have: one text, or a list with one for each head.

    Raises ValueError that says what to write instead.
    """
    found = (written,) if isinstance(written, str) else written
    if not isinstance(found, list | tuple) or not found or not all(isinstance(one, str) for one in found):
        raise ValueError(_ONE_OR_MORE)
    if len(found) > MOST_HEADS:
        raise ValueError(f"there are {len(found)} addresses; write one for each head, at most {MOST_HEADS}")
    for one in found:
        try:
            split_host_port(one)
        except ValueError as error:
            raise ValueError(f"{one!r} is no address: {error}" if len(found) > 1 else str(error)) from None
    return _unique(found)


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


def _provider_name(text: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9-]{0,31}", text) is None:
        raise ValueError("write a provider's name: a-z, 0-9 and `-`, at most 32 characters")
    return text


def _full_path(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("a daemon may begin in any folder; use a full path, from /")
    return path


FullPath = Annotated[Path, Checked(_full_path)]
HostPort = Annotated[str, Checked(_host_port)]
HeadAddresses = Annotated[tuple[str, ...], WrittenAs(head_addresses)]
"""The addresses of the heads, HOST:PORT each, in the order of the file; there is at least one."""
NodeList = Annotated[str, Checked(_node_list)]
SomeNodes = Annotated[str, Checked(_some_nodes)]
NodeCommand = Annotated[tuple[str, ...], Checked(_for_a_node)]
Durations = Annotated[tuple[float, ...], Checked(_times)]
Waits = Annotated[tuple[float, ...], Checked(_waits)]
ExitCodes = Annotated[tuple[int, ...], Checked(_exit_codes)]
AutoResume = Annotated[str, Checked(_auto_resume)]
ProviderName = Annotated[str, Checked(_provider_name)]
Program = Annotated[tuple[str, ...], Checked(_program)]


def is_program(hint: Any) -> bool:
    """Return whether the type is that of an argv, as `Program` and `NodeCommand` are."""
    return any(rule in (_program, _for_a_node) for rule in _rules(hint))
