"""Notifications: a channel's rule, its messages and its state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.events import Event, Level
from steward.model.ids import UnixTime


class ChannelKind(Enum):
    """The kind of a channel."""

    WEBHOOK = "webhook"
    MAIL = "mail"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRule:
    """The choice of events for a channel, and the rate of its messages. Empty `kinds` (prefixes) or `groups`: all.

    Events with one cause become one message within `window_s`; at most `per_hour` messages are tried within an hour,
    and of those about jobs half as many.
    """

    name: str
    levels: frozenset[Level]
    kinds: tuple[str, ...] = ()
    groups: frozenset[str] = frozenset()
    window_s: float = 300.0
    per_hour: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to be sent, about `count` events of one `key`.

    `last` is the newest event, `level` the highest level, `since` the time of the oldest event (Unix s), `number` that
    of the first event, which is unique in a channel. `trying`: a try has begun and its end is not known. `tries` counts
    the failed ones.
    """

    number: int
    key: str
    last: Event
    level: Level
    since: float
    count: int = 1
    not_before: UnixTime = 0.0
    tries: int = 0
    trying: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """The state of a channel that outlives a restart.

    All events up to number `cursor` were taken. `sent_at` maps a key to the time of its last message; `attempts`
    holds the times of the tries within the last hour.
    """

    cursor: int
    queue: tuple[Message, ...] = ()
    sent_at: Mapping[str, UnixTime] = field(default_factory=lambda: MappingProxyType({}))
    attempts: tuple[UnixTime, ...] = ()
