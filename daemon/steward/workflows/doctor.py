"""`steward doctor`: facts gathered elsewhere, judged here. Each line says how it is and, if not well, what to do."""

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that was looked at. `remedy` is empty where nothing need be done."""

    topic: str
    health: Health
    text: str
    remedy: str = ""


def ok(topic: str, text: str) -> Line:
    return Line(topic=topic, health=Health.OK, text=text)


def warn(topic: str, text: str, remedy: str) -> Line:
    return Line(topic=topic, health=Health.WARN, text=text, remedy=remedy)


def bad(topic: str, text: str, remedy: str) -> Line:
    return Line(topic=topic, health=Health.BAD, text=text, remedy=remedy)
