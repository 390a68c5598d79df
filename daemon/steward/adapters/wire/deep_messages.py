"""An agent's words to the head on deep checks of its node, as a frame and back. Input is hostile until it passed
here."""

from collections.abc import Iterable
from dataclasses import replace

from steward.adapters.wire.codec import Codec
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.deep import MAX_MEASURES as MAX_MEASURES
from steward.model.deep import DeepReport, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName

_TEXTS = 64
"""Measures whose text is told; of the others only their numbers."""
_MEASURE = Codec(Measure)
_REPORT = Codec(DeepReport, "deep")


def measure_record(measure: Measure) -> Frame:
    return _MEASURE.write(measure)


def measure_of(record: object, here: NodeName) -> Measure:
    """Read a measure that the agent of `here` may report: any of its own; of another node only that it could not be
    measured. Raises Malformed."""
    return _of(_MEASURE.read(record), here)


def deep_frame(report: DeepReport) -> Frame:
    """Fits a frame whatever is in it."""
    return _REPORT.write(replace(report, measures=_short(report.measures)))


def deep_of(frame: Frame, node: NodeName) -> DeepReport:
    """Raises Malformed."""
    report = _REPORT.read(frame, node=node)
    for one in report.measures:
        _of(one, node)
    return report


def _of(measure: Measure, here: NodeName) -> Measure:
    if measure.node != here and measure.outcome is not Outcome.UNKNOWN:
        raise Malformed(f"{here} tells a measure of {measure.node}")
    return measure


def _short(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """The newest ones that did not pass keep their texts."""
    ordered = sorted(measures, key=lambda one: one.outcome is not Outcome.PASSED)[-MAX_MEASURES:]
    wordless = max(0, len(ordered) - _TEXTS)
    return (*(replace(one, text="") for one in ordered[:wordless]), *ordered[wordless:])
