"""Decide which events become messages, when each is sent, and its text. Pure: a channel's state in, its next state out.

Texts of events are hostile: in messages they are data, never markup. The first event of its key is sent at once, and
further ones within the window become one message at its end. A failed message is tried again a few times. No message is
ever sent about notifications themselves.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from string import Template
from typing import Any

from steward.model.events import Event, Level
from steward.model.ids import NodeName
from steward.model.notify import ChannelRule, ChannelState, Message
from steward.model.text import one_line, printable, times

TEMPLATES = ("json", "slack", "pagerduty")
FIELDS = ("title", "text", "level", "kind", "node", "job", "case", "count", "since", "at", "cluster", "id", "secret")
"""The fields that a site's own template may name, as `$text`."""
_TITLE, _LONGEST = 150, 2000
_PAGERDUTY = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "info"}


def title(message: Message, cluster: str) -> str:
    """Return the title in one line."""
    event = message.last
    often = f" ({times(message.count)} since {_clock(message.since)})" if message.count > 1 else ""
    what = "more events, see `steward events`" if message.key == REST else event.kind
    about = f" {event.node}" if event.node and message.key != REST else ""
    return one_line(f"[{cluster or 'steward'}] {message.level.value}: {what}{about}{often}", _TITLE)


def fields(message: Message, cluster: str, secret: str = "") -> dict[str, str]:
    """Return the fields that a template may name, as text."""
    event = message.last
    return {
        "title": title(message, cluster),
        "text": one_line(event.text, _LONGEST),
        "level": message.level.value,
        "kind": event.kind,
        "node": event.node or "",
        "job": event.shown_id,
        "case": event.case or "",
        "count": str(message.count),
        "since": _clock(message.since),
        "at": _clock(event.at),
        "cluster": cluster,
        "id": message_id(message, cluster),
        "secret": secret,
    }


def message_id(message: Message, cluster: str) -> str:
    """Return the message's id, which is the same for every try."""
    return f"{cluster or 'steward'}-{message.number}"


def body(template: str, message: Message, cluster: str, secret: str = "") -> str:
    """Return the JSON text of a webhook. Raises ValueError for a bad template."""
    match template:
        case "json":
            return json.dumps(document(message, cluster))
        case "slack":
            return json.dumps(_slack(message, cluster))
        case "pagerduty":
            return json.dumps(_pagerduty(message, cluster, secret))
        case _:
            return _own(template, fields(message, cluster, secret))


def document(message: Message, cluster: str) -> dict[str, Any]:
    """Return the message as an object: the body of template `json`, and the input of a command."""
    told = fields(message, cluster)
    del told["secret"]
    return {**told, "count": message.count, "since": message.since, "at": message.last.at}


def problem_of(template: str) -> str:
    """Return what is wrong with a site's own template; empty if it is good."""
    if template in TEMPLATES:
        return ""
    known = ", ".join(f"${name}" for name in FIELDS)
    if wrong := set(Template(template).get_identifiers()) - set(FIELDS):
        return f"${min(wrong)} is not a field; there are {known}"
    try:
        body(template, _SAMPLE, "c")
    except ValueError:
        return f"is neither {', '.join(TEMPLATES)} nor JSON with fields such as $text in its strings"
    return ""


def _own(template: str, told: dict[str, str]) -> str:
    """Return the filled template."""
    # Each field is inserted as the inside of a JSON string, so that no text can end that string.
    filled = Template(template).substitute({name: json.dumps(text)[1:-1] for name, text in told.items()})
    json.loads(filled)
    return filled


def _slack(message: Message, cluster: str) -> dict[str, Any]:
    """Return the message for Slack, with `<`, `>` and `&` escaped as its API demands."""
    head, text = (_escaped(each) for each in (title(message, cluster), fields(message, cluster)["text"]))
    return {"text": f"{head}\n{text}"}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _pagerduty(message: Message, cluster: str, secret: str) -> dict[str, Any]:
    """Return the message for Events API v2: one alert for each key, however often its events come."""
    told = document(message, cluster)
    return {
        "routing_key": secret,
        "event_action": "trigger",
        "dedup_key": printable(f"{cluster}|{message.key}", 250),
        "payload": {
            "summary": one_line(f"{told['title']}: {told['text']}", 1000),
            "source": told["node"] or cluster or "steward",
            "severity": _PAGERDUTY[message.level],
            "component": message.last.kind,
            "custom_details": told,
        },
    }


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_SAMPLE = Message(number=1, key="k", last=Event(at=0.0, kind="k", text='"\\'), level=Level.INFO, since=0.0)


HOUR_S = 3600.0
MOST_QUEUED = 50
"""If more messages wait, the surplus becomes one that tells how many events it stands for."""
MOST_TRIES = 5
REST = "rest"
OWN = "notify."
_BACKOFF_S = (5.0, 30.0, 120.0, 600.0)

GroupOf = Callable[[NodeName], str]


def key_of(event: Event) -> str:
    """Return the key under which repetitions of an event count as one, also those of another case of the node."""
    about = event.node or dict(event.data).get("group", "")
    return f"{event.kind}|{about}|{event.job or ''}"


def is_wanted(event: Event, rule: ChannelRule, group_of: GroupOf) -> bool:
    """Return whether the channel sends the event."""
    if event.level not in rule.levels or event.kind.startswith(OWN):
        return False
    if rule.kinds and not event.kind.startswith(rule.kinds):
        return False
    group = dict(event.data).get("group") or (group_of(event.node) if event.node else "")
    return not rule.groups or group in rule.groups


def with_events(
    state: ChannelState, rule: ChannelRule, events: Iterable[tuple[int, Event]], group_of: GroupOf, now: float
) -> ChannelState:
    """Return the state after these events, which come after its cursor."""
    queue, cursor = list(state.queue), state.cursor
    for number, event in events:
        cursor = max(cursor, number)
        if is_wanted(event, rule, group_of):
            _queue(queue, number, event, state, rule, now)
    told = {key: at for key, at in state.sent_at.items() if now < at + rule.window_s}
    attempts = tuple(at for at in state.attempts if now < at + HOUR_S)
    return replace(state, cursor=cursor, queue=tuple(_bounded(queue)), sent_at=told, attempts=attempts)


def _queue(queue: list[Message], number: int, event: Event, state: ChannelState, rule: ChannelRule, now: float) -> None:
    """Add an event to the queue, or to the waiting message of its key."""
    key = key_of(event)
    for place, waiting in enumerate(queue):
        if waiting.key == key and not waiting.trying:
            level = _highest((waiting.level, event.level))
            queue[place] = replace(waiting, last=event, level=level, count=waiting.count + 1)
            return
    told = state.sent_at.get(key)
    begins = now if told is None or now >= told + rule.window_s else told + rule.window_s
    queue.append(Message(number=number, key=key, last=event, level=event.level, since=event.at, not_before=begins))


def _bounded(queue: list[Message]) -> list[Message]:
    """Return the queue; beyond `MOST_QUEUED` with its least important messages merged into one."""
    if len(queue) <= MOST_QUEUED:
        return queue
    rest = [one for one in queue if one.key == REST and not one.trying]
    others = sorted((one for one in queue if one not in rest), key=_rank)
    kept = others[: MOST_QUEUED - 1]
    merged = [*rest, *others[MOST_QUEUED - 1 :]]
    newest = max(merged, key=lambda one: one.last.at)
    digest = replace(
        newest,
        number=min(one.number for one in merged),
        key=REST,
        level=_highest(one.level for one in merged),
        since=min(one.since for one in merged),
        count=sum(one.count for one in merged),
        not_before=min(one.not_before for one in merged),
        tries=max(one.tries for one in merged),
    )
    return sorted([*kept, digest], key=lambda one: one.number)


def _highest(levels: Iterable[Level]) -> Level:
    return max(levels, key=lambda level: level.rank)


def _rank(message: Message) -> tuple[bool, int, bool, int]:
    return (not message.trying, -message.level.rank, _is_of_job(message), message.number)


def _is_of_job(message: Message) -> bool:
    """Return whether the message is about a job and no error: a user can bring about as many as he likes."""
    return message.last.job is not None and message.level is not Level.ERROR


def _most(message: Message, rule: ChannelRule) -> int:
    """Return how many tries in an hour leave room for this message: half of them are not for what users bring about."""
    return max(1, rule.per_hour // 2) if _is_of_job(message) else rule.per_hour


def next_message(state: ChannelState, rule: ChannelRule, now: float) -> Message | None:
    """Return the most important message that may be sent now; None if there is none."""
    used = sum(now < at + HOUR_S for at in state.attempts)
    ready = (one for one in state.queue if one.not_before <= now and used < _most(one, rule))
    return min(ready, key=_rank, default=None)


def next_due(state: ChannelState, rule: ChannelRule, now: float) -> float | None:
    """Return when `next_message` may return a message without a new event; None if the queue is empty."""
    recent = sorted(at for at in state.attempts if now < at + HOUR_S)

    def free_at(most: int) -> float:
        return recent[-most] + HOUR_S if len(recent) >= most else now

    return min((max(free_at(_most(one, rule)), one.not_before) for one in state.queue), default=None)


def after_try_began(state: ChannelState, message: Message, now: float) -> ChannelState:
    """Return the state after a try began: it counts, and later events of its key wait for the window's end."""
    return replace(
        _with(state, replace(message, trying=True)),
        attempts=(*state.attempts, now),
        sent_at={**state.sent_at, message.key: now},
    )


def without_message(state: ChannelState, message: Message) -> ChannelState:
    """Return the state without this message."""
    return replace(state, queue=tuple(one for one in state.queue if one.number != message.number))


def after_failed_try(state: ChannelState, message: Message, now: float, *, is_final: bool) -> ChannelState:
    """Return the state after a try failed: the message is tried again later, or given up."""
    tries = message.tries + 1
    if is_final or tries >= MOST_TRIES:
        return without_message(state, message)
    again = now + _BACKOFF_S[min(tries, len(_BACKOFF_S)) - 1]
    return _with(state, replace(message, trying=False, tries=tries, not_before=again))


def is_given_up(state: ChannelState, message: Message) -> bool:
    """Return whether the message is no longer in the queue."""
    return all(one.number != message.number for one in state.queue)


def after_restart(state: ChannelState) -> ChannelState:
    """Return the state after a restart, when it is unknown whether a message that was being tried arrived.

    An error is sent again under the same number, so that nothing important is lost. Any lower level is not, so that
    nothing comes twice.
    """
    kept = (one for one in state.queue if not one.trying or one.level is Level.ERROR)
    return replace(state, queue=tuple(replace(one, trying=False) for one in kept))


def _with(state: ChannelState, message: Message) -> ChannelState:
    """Return the state with this version of the message."""
    queue = tuple(message if one.number == message.number else one for one in state.queue)
    return replace(state, queue=queue)
