"""Messages to people outside: what a channel sends, and what it has to remember."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.events import Event, Level


class ChannelKind(Enum):
    WEBHOOK = "webhook"
    MAIL = "mail"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRule:
    """The choice of messages for a channel, and their rate. Empty `kinds` (prefixes) and `groups`: all of them.

    What has one cause is one message within `window_s`; of all messages at most `per_hour` are tried within an hour.
    """

    name: str
    levels: frozenset[Level]
    kinds: tuple[str, ...] = ()
    groups: frozenset[str] = frozenset()
    window_s: float = 300.0
    per_hour: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message that is to be sent. `count` events of one `key` are in it; `last` is the newest, `level` the highest,
    `since` the oldest one's time (Unix s). `number` is the first event's: it never comes twice in a channel.

    `trying`: a try was begun and its end is not known. `tries` have failed.
    """

    number: int
    key: str
    last: Event
    level: Level
    since: float
    count: int = 1
    not_before: float = 0.0
    tries: int = 0
    trying: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """The state of a channel that outlives a restart. `cursor`: all events up to this number were taken. `told`: key ->
    when a message of it was made last. `attempts`: when messages were tried within the last hour."""

    cursor: int
    queue: tuple[Message, ...] = ()
    told: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    attempts: tuple[float, ...] = ()
