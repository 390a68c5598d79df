"""What an agent tells the head of deep checks on its node, as a frame and back. What comes in is hostile until here."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from steward.adapters.wire.codec import items, number, text
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.deep import DeepReport, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.text import printable, shown

MAX_MEASURES = 200
"""Of one node in one run: enough for a tournament of 48 nodes, and what fits a frame."""
MAX_RUN = 64
MAX_CHECK = 40
MAX_UNIT = 16
MAX_MEASURE_TEXT = 160
MAX_PROGRESS = 120
_TEXTS = 64
"""Measures whose text is told; of the others only their numbers."""
_RUN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
_CHECK = re.compile(r"^[a-z][a-z0-9_.]{0,39}$")
_NODE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


def measure_record(measure: Measure) -> dict[str, Any]:
    return {
        "check": measure.check,
        "node": measure.node,
        "outcome": measure.outcome.value,
        "value": measure.value if math.isfinite(measure.value) else None,
        "unit": printable(measure.unit, MAX_UNIT),
        "text": printable(measure.text, MAX_MEASURE_TEXT),
        "partner": measure.partner,
        "seconds": measure.seconds,
    }


def measure_of(record: object, here: NodeName) -> Measure:
    """What the agent of `here` may say: anything of itself; of another node only that it could not be measured. Raises
    Malformed."""
    if not isinstance(record, dict):
        raise Malformed("a measure that is no object")
    node, partner = _node(record, "node"), record.get("partner")
    try:
        outcome = Outcome(record.get("outcome"))
    except ValueError:
        raise Malformed(f"outcome={shown(record.get('outcome'))} is no outcome") from None
    if node != here and outcome is not Outcome.UNKNOWN:
        raise Malformed(f"{here} tells a measure of {node}")
    return Measure(
        check=_word(record, "check", _CHECK),
        node=node,
        outcome=outcome,
        value=math.nan if record.get("value") is None else number(record, "value"),
        unit=text(record, "unit", MAX_UNIT),
        text=text(record, "text", MAX_MEASURE_TEXT),
        partner=None if partner is None else _node(record, "partner"),
        seconds=number(record, "seconds"),
    )


def deep_frame(report: DeepReport) -> Frame:
    """Fits a frame whatever is in it."""
    return {
        "t": "deep",
        "run": report.run,
        "measures": [measure_record(one) for one in _short(report.measures)],
        "progress": printable(report.progress, MAX_PROGRESS),
        "done": report.is_done,
        "at": report.at,
    }


def deep_of(frame: Mapping[str, Any], node: NodeName) -> DeepReport:
    """Raises Malformed."""
    done = frame.get("done")
    if not isinstance(done, bool):
        raise Malformed(f"done={shown(done)} is neither true nor false")
    return DeepReport(
        run=run_id(frame, "run"),
        node=node,
        measures=tuple(measure_of(one, node) for one in items(frame, "measures", MAX_MEASURES)),
        progress=text(frame, "progress", MAX_PROGRESS),
        is_done=done,
        at=number(frame, "at"),
    )


def run_id(record: Mapping[str, Any], key: str) -> str:
    """Raises Malformed."""
    return _word(record, key, _RUN)


def _short(measures: Iterable[Measure]) -> list[Measure]:
    """The newest ones that did not pass keep their texts."""
    ordered = sorted(measures, key=lambda one: one.outcome is not Outcome.PASSED)[-MAX_MEASURES:]
    wordless = max(0, len(ordered) - _TEXTS)
    return [replace(one, text="") for one in ordered[:wordless]] + ordered[wordless:]


def _node(record: Mapping[str, Any], key: str) -> NodeName:
    return NodeName(_word(record, key, _NODE))


def _word(record: Mapping[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    value = text(record, key, 64)
    if not pattern.fullmatch(value):
        raise Malformed(f"{key}={value!r} is not a name that is allowed here")
    return value
