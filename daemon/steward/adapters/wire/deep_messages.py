"""The measures of a deep check: the runner's lines to its node's agent, and the agent's frames to the head.

Written and read here; input is hostile until it is read.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import quote, unquote

from steward.adapters.codec import FrameCodec
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.bounds import Called, Form, Given, MaxLen, Node, Printable
from steward.model.deep import MAX_MEASURES, MAX_PROGRESS, RUN, DeepReport, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.text import printable

_MOST_TEXTS = 64
"""How many measures are sent with their text; of the others only the numbers are sent."""
_MEASURE = FrameCodec(Measure)
_REPORT = FrameCodec(DeepReport, "deep")


def measure_record(measure: Measure) -> Frame:
    return _MEASURE.write(measure)


def measure_of(record: object, here: NodeName) -> Measure:
    """Return a measure from the agent of `here`. Raises Malformed.

    The agent may report any measure of its own node, but of another node only that it could not be measured.
    """
    return _checked(_MEASURE.read(record), here)


def deep_frame(report: DeepReport) -> Frame:
    """Return the frame of the report, shortened to fit."""
    return _REPORT.write(replace(report, measures=_shortened(report.measures)))


def deep_of(frame: Frame, node: NodeName) -> DeepReport:
    """Return the report in the frame. Raises Malformed."""
    report = _REPORT.read(frame, node=node)
    for one in report.measures:
        _checked(one, node)
    return report


def _checked(measure: Measure, here: NodeName) -> Measure:
    if measure.node != here and measure.outcome is not Outcome.UNKNOWN:
        raise Malformed(f"{here} reports a measure of another node, {measure.node}")
    return measure


def _shortened(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Return the measures to send; the newest that did not pass keep their texts."""
    ordered = sorted(measures, key=lambda one: one.outcome is not Outcome.PASSED)[-MAX_MEASURES:]
    wordless = max(0, len(ordered) - _MOST_TEXTS)
    return (*(replace(one, text="") for one in ordered[:wordless]), *ordered[wordless:])


# The lines in which the runner of a deep check reports to its node's agent.

VERB = "steward/1 deep"
_NUMBERS = ("value", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepLine:
    """A line of the runner of deep check `run`: a measure, or its progress. `node` is as the runner names it."""

    run: Annotated[str, MaxLen(64), Form(RUN)]
    node: Annotated[Node, Called("here")]
    measure: Annotated[Measure | None, Given()] = None
    progress: Annotated[str, Printable(MAX_PROGRESS)] = ""
    is_done: Annotated[bool, Called("done")] = False


_LINE = FrameCodec(DeepLine)


def measure_line(run: str, here: NodeName, measure: Measure) -> bytes:
    """Return the line of a measure, of at most 1024 bytes."""
    record = {**measure_record(measure), "run": run, "here": here}
    return _line({key: str(value) for key, value in record.items() if value is not None and value != ""})


def progress_line(run: str, here: NodeName, progress: str, *, is_done: bool = False) -> bytes:
    told = printable(progress, MAX_PROGRESS)
    return _line({"run": run, "here": here, "progress": told or "-", "done": "1" if is_done else "0"})


def parse_deep_line(fields: Mapping[str, str]) -> DeepLine:
    """Return the line with these fields. Raises Malformed."""
    plain = {key: unquote(value, errors="strict") for key, value in _decodable(fields).items()}
    if "check" not in plain:
        return _LINE.read({**plain, "done": plain.get("done") == "1"})
    line = _LINE.read({**plain, "progress": "", "done": False})
    record: dict[str, object] = {"unit": "", "text": "", "partner": None, "value": None, **plain}
    record |= {key: _number(plain[key]) for key in _NUMBERS if key in plain}
    return replace(line, measure=measure_of(record, line.node))


def _line(fields: Mapping[str, str]) -> bytes:
    words = [f"{key}={quote(value, safe='/:,()+')}" for key, value in fields.items()]
    return f"{VERB} {' '.join(words)}\n".encode("ascii")


def _decodable(fields: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in fields.items():
        try:
            unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise Malformed(f"{key} is not text") from None
    return fields


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise Malformed(f"{word[:40]!r} is not a number") from None
    if not math.isfinite(value):
        raise Malformed(f"{word[:40]!r} is not a number")
    return value
