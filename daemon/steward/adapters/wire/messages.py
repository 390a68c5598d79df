"""Messages between agent and head, as frames and back. Input is hostile until it is read here."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

from steward.adapters.codec import FrameCodec, int_field, list_field, readable_records, text_field
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.ask import Answer, OptedIn
from steward.model.bounds import Called, MaxLen, Node
from steward.model.health import Finding, Outcome, Report
from steward.model.ids import AskId, NodeName
from steward.model.resume_mode import MAX_TEXT, ResumeMode
from steward.model.text import printable

MAX_FINDINGS = 48
MAX_CHECKS = 256
MAX_HARDWARE = 32
MAX_NAME = 64
MAX_OPTED = 256
_SHARED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    """The head's answer for a waiting shim. `exclude` are the nodes that a RETRY must not use."""

    id: AskId
    answer: Answer
    exclude: Annotated[frozenset[Annotated[Node, Called("name")]], MaxLen(1024)]


_OPTED = FrameCodec(OptedIn)
_FINDING = FrameCodec(Finding)
_ANSWER = FrameCodec(_Answered, "answer")


def record_of(value: object) -> Mapping[str, Any]:
    """Return the value, which must be an object. Raises Malformed."""
    if not isinstance(value, dict):
        raise Malformed("an element of a list is not an object")
    return value


def mode_of(frame: Mapping[str, Any]) -> ResumeMode:
    """Return the field `mode`. Raises Malformed."""
    try:
        return ResumeMode.parse(text_field(frame, "mode", MAX_TEXT))
    except ValueError as error:
        raise Malformed(str(error)) from None


def opted_record(opted: OptedIn) -> Frame:
    return _OPTED.write(opted)


def opted_of(value: object) -> OptedIn:
    """Return the opted-in job in the record. Raises Malformed."""
    return _OPTED.read(value)


def opted_list(frame: Frame) -> tuple[OptedIn, ...]:
    """Return the jobs of a `hello` or an `opted` frame (key "opted"). Raises Malformed."""
    return readable_records(frame, "opted", MAX_OPTED, opted_of)


def finding_record(finding: Finding) -> Frame:
    return _FINDING.write(finding)


def finding_of(value: object) -> Finding:
    """Return the finding in the record. Raises Malformed."""
    return _FINDING.read(value)


def report_frame(
    findings: Iterable[Finding],
    checked: str | None,
    *,
    hardware: Iterable[str] = (),
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Frame:
    """Return the frame of all present findings, the worst ones if there are too many.

    `checked` is the id of the `check_now` that the report answers.
    """
    ordered = sorted(findings, key=_badness)
    quiet = [finding for finding in ordered if finding.is_quiet]
    passed = [finding for finding in quiet if finding.outcome is Outcome.PASSED][:MAX_CHECKS]
    skipped = [finding.check for finding in quiet if finding.outcome is Outcome.SKIPPED]
    return {
        "t": "report",
        "findings": [finding_record(one) for one in ordered if not one.is_quiet][:MAX_FINDINGS],
        "passed": [finding.check for finding in passed],
        "passed_since": [int(finding.at) for finding in passed],
        "skipped": skipped[:MAX_CHECKS],
        "hardware": [printable(one, MAX_NAME) for one in hardware][:MAX_HARDWARE],
        "versions": dict(list(versions.items())[:MAX_CHECKS]),
        "checked": checked,
    }


def report_of(frame: Frame) -> Report:
    """Return the report in the frame. Raises Malformed."""
    versions = record_of(frame.get("versions", {}))
    if len(versions) > MAX_CHECKS:
        raise Malformed(f"versions has more than {MAX_CHECKS} entries")
    passed = _names(frame, "passed", MAX_CHECKS)
    return Report(
        findings=readable_records(frame, "findings", MAX_FINDINGS, finding_of),
        passed=_shared(frozenset(passed)),
        passed_since=_since(frame, passed),
        skipped=_shared(frozenset(_names(frame, "skipped", MAX_CHECKS))),
        hardware=tuple(_names(frame, "hardware", MAX_HARDWARE)),
        versions=_mapping(
            tuple((sys.intern(_name(check)), text_field(versions, check, MAX_NAME)) for check in versions)
        ),
        checked=None if frame.get("checked") is None else text_field(frame, "checked"),
    )


def _since(frame: Frame, passed: list[str]) -> tuple[int, ...]:
    """Return since when each passed check passes, in order of names; empty without times. Raises Malformed."""
    times = [int_field({"passed_since": at}, "passed_since") for at in list_field(frame, "passed_since", MAX_CHECKS)]
    if times and len(times) != len(passed):
        raise Malformed(f"passed_since has {len(times)} entries for {len(passed)} checks")
    equal: dict[int, int] = {}  # most checks of a node began to pass at the same time: equal times share one object
    return tuple(equal.setdefault(at, at) for _, at in sorted(zip(passed, times, strict=False)))


@lru_cache(maxsize=_SHARED)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """Return one object for all equal sets."""
    # The nodes of a cluster pass the same checks, and a set of 60 takes 4 KiB.
    return names


@lru_cache(maxsize=_SHARED)
def _mapping(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return one mapping for all equal items."""
    return MappingProxyType(dict(items))


def _names(frame: Frame, key: str, limit: int) -> list[str]:
    """Return the names in a list field, interned: thousands of agents name the same checks. Raises Malformed."""
    return [sys.intern(_name(value)) for value in list_field(frame, key, limit)]


def _name(value: object) -> str:
    return text_field({"name": value}, "name", MAX_NAME)


def answer_frame(ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> Frame:
    return _ANSWER.write(_Answered(id=ask, answer=answer, exclude=exclude))


def answer_of(frame: Frame) -> tuple[AskId, Answer, frozenset[NodeName]]:
    """Return the ask, the answer and the nodes to exclude. Raises Malformed."""
    told = _ANSWER.read(frame)
    return told.id, told.answer, told.exclude


def check_now_frame(asked_at: float, budget_s: float) -> Frame:
    """Return the order to run the checks now; its id is the time of sending (Unix s of the head's clock)."""
    return {"t": "check_now", "id": repr(asked_at), "budget_s": budget_s}


def asked_at(report: Report) -> float | None:
    """Return when the `check_now` that the report answers was sent; None if it answers none."""
    try:
        at = float(report.checked or "nan")
    except ValueError:
        return None
    return at if math.isfinite(at) else None


def withdraw_frame(ask: AskId) -> Frame:
    """Return the frame that withdraws an ask, after its shim closed the connection."""
    return {"t": "withdraw", "id": ask}


def opted_frame(opted: Iterable[OptedIn]) -> Frame:
    return {"t": "opted", "opted": [opted_record(one) for one in opted]}


def _badness(finding: Finding) -> tuple[bool, int, str]:
    return not finding.is_bad, -finding.severity.rank, finding.check
