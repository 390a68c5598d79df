"""A message as text, and as the JSON of a webhook. Texts of events are hostile: here they are data, never markup."""

import json
from datetime import UTC, datetime
from string import Template
from typing import Any

from steward.model.events import Event, Level
from steward.model.notify import Message
from steward.model.text import printable
from steward.views.notify import REST

TEMPLATES = ("json", "slack", "pagerduty")
FIELDS = ("title", "text", "level", "kind", "node", "job", "case", "count", "since", "at", "cluster", "id", "secret")
"""The fields that a site's own template may name, as `$text`."""
_TITLE, _LONGEST = 150, 2000
_PAGERDUTY = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "info"}


def title(message: Message, cluster: str) -> str:
    """One line."""
    event = message.last
    times = f" ({message.count} times since {_clock(message.since)})" if message.count > 1 else ""
    what = "more events, see `steward events`" if message.key == REST else event.kind
    about = f" {event.node}" if event.node and message.key != REST else ""
    return printable(f"[{cluster or 'steward'}] {message.level.value}: {what}{about}{times}", _TITLE)


def fields(message: Message, cluster: str, secret: str = "") -> dict[str, str]:
    """Everything that a template may name, as text."""
    event = message.last
    return {
        "title": title(message, cluster),
        "text": printable(event.text, _LONGEST),
        "level": message.level.value,
        "kind": event.kind,
        "node": event.node or "",
        "job": str(event.job or ""),
        "case": event.case or "",
        "count": str(message.count),
        "since": _clock(message.since),
        "at": _clock(event.at),
        "cluster": cluster,
        "id": message_id(message, cluster),
        "secret": secret,
    }


def message_id(message: Message, cluster: str) -> str:
    """The same for every try of one message."""
    return f"{cluster or 'steward'}-{message.number}"


def body(template: str, message: Message, cluster: str, secret: str = "") -> str:
    """The JSON text of a webhook. Raises ValueError for a template that is none."""
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
    """All of it as an object: what `json` sends, and a command reads."""
    told = fields(message, cluster)
    del told["secret"]
    return {**told, "count": message.count, "since": message.since, "at": message.last.at}


def problem_of(template: str) -> str:
    """The error in a site's own template; empty when there is none."""
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
    """Each field is put in as the inside of a JSON string, so that no text can end the string it stands in."""
    filled = Template(template).substitute({name: json.dumps(text)[1:-1] for name, text in told.items()})
    json.loads(filled)
    return filled


def _slack(message: Message, cluster: str) -> dict[str, Any]:
    """`<`, `>` and `&` are Slack's markup, as its API says to write them."""
    head, text = (_escaped(each) for each in (title(message, cluster), fields(message, cluster)["text"]))
    return {"text": f"{head}\n{text}"}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _pagerduty(message: Message, cluster: str, secret: str) -> dict[str, Any]:
    """Events API v2: one alert for each thing, however often it is told."""
    told = document(message, cluster)
    return {
        "routing_key": secret,
        "event_action": "trigger",
        "dedup_key": printable(f"{cluster}|{message.key}", 250),
        "payload": {
            "summary": printable(f"{told['title']}: {told['text']}", 1000),
            "source": told["node"] or cluster or "steward",
            "severity": _PAGERDUTY[message.level],
            "component": message.last.kind,
            "custom_details": told,
        },
    }


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_SAMPLE = Message(number=1, key="k", last=Event(at=0.0, kind="k", text='"\\'), level=Level.INFO, since=0.0)
