"""What agent and head tell each other, as frames and back. What comes in is hostile until it has passed here."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

from steward.adapters.wire.frames import Frame, Malformed
from steward.model.action import LetGo
from steward.model.ask import Answer, OptedIn
from steward.model.elastic_spec import MAX_TEXT as MAX_ELASTIC
from steward.model.elastic_spec import ElasticWords
from steward.model.health import Advice, Finding, Outcome, Report, Scope, Severity
from steward.model.ids import AskId, JobId, NodeName
from steward.model.resume_mode import MAX_TEXT as MAX_MODE
from steward.model.resume_mode import ResumeMode
from steward.model.text import printable, shown

MAX_FINDINGS = 48
MAX_CHECKS = 256
MAX_HARDWARE = 32
MAX_NAME = 64
MAX_TEXT = 400
MAX_OPTED = 256
MAX_NAMES = 1024
_SHARED = 256

T = TypeVar("T")


def whole(frame: Mapping[str, Any], key: str, *, low: int = 0, high: int = 2**63 - 1) -> int:
    """An integer field within its range."""
    value = frame.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Malformed(f"{key}={shown(value)} is not a whole number from {low} to {high}")
    return value


def number(frame: Mapping[str, Any], key: str) -> float:
    value = frame.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e15:
        raise Malformed(f"{key}={shown(value)} is not a number")
    return float(value)


def text(frame: Mapping[str, Any], key: str, limit: int = 128) -> str:
    """A text field without control characters, not longer than `limit`."""
    value = frame.get(key)
    if not isinstance(value, str) or len(value) > limit or printable(value, limit) != value:
        raise Malformed(f"{key} is not a printable text of at most {limit} characters")
    return value


def items(frame: Mapping[str, Any], key: str, limit: int) -> list[Any]:
    value = frame.get(key, [])
    if not isinstance(value, list) or len(value) > limit:
        raise Malformed(f"{key} is not a list of at most {limit}")
    return value


def record_of(value: object) -> Mapping[str, Any]:
    """An object of a list. Raises Malformed."""
    if not isinstance(value, dict):
        raise Malformed("a list holds what is not an object")
    return value


def mode_of(frame: Mapping[str, Any]) -> ResumeMode:
    """The field `mode`. Raises Malformed."""
    try:
        return ResumeMode.parse(text(frame, "mode", MAX_MODE))
    except ValueError as error:
        raise Malformed(str(error)) from None


def opted_record(opted: OptedIn) -> dict[str, Any]:
    return {
        "job": opted.job,
        "uid": opted.uid,
        "mode": opted.mode.text,
        "restart": opted.restart,
        "at": opted.at,
        **({"elastic": opted.elastic} if opted.elastic else {}),
    }


def opted_of(value: object) -> OptedIn:
    """Raises Malformed."""
    record = record_of(value)
    return OptedIn(
        job=JobId(whole(record, "job", low=1)),
        uid=whole(record, "uid", high=2**32 - 1),
        mode=mode_of(record),
        restart=whole(record, "restart", high=10**6),
        at=number(record, "at"),
        elastic=_elastic_of(record) if "elastic" in record else "",
    )


def _elastic_of(record: Mapping[str, Any]) -> str:
    try:
        return ElasticWords.parse(text(record, "elastic", MAX_ELASTIC)).text
    except ValueError as error:
        raise Malformed(str(error)) from None


def opted_list(frame: Frame) -> tuple[OptedIn, ...]:
    """The jobs of a `hello` or an `opted` frame (key "opted")."""
    return tuple(opted_of(value) for value in items(frame, "opted", MAX_OPTED))


def finding_record(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "outcome": finding.outcome.value,
        "severity": finding.severity.value,
        "advice": finding.advice.value,
        "text": printable(finding.text, MAX_TEXT),
        "at": finding.at,
        "event": finding.event,
        "scope": finding.scope.value,
        "hardware": printable(finding.hardware, MAX_NAME),
    }


def finding_of(value: object) -> Finding:
    """Raises Malformed."""
    record = record_of(value)
    return Finding(
        check=text(record, "check", 40),
        outcome=word(Outcome, record, "outcome"),
        severity=word(Severity, record, "severity"),
        advice=word(Advice, record, "advice"),
        text=text(record, "text", MAX_TEXT),
        at=number(record, "at"),
        event=record.get("event") is True,
        scope=word(Scope, record, "scope"),
        hardware=text(record, "hardware", MAX_NAME),
    )


def report_frame(
    findings: Iterable[Finding],
    checked: str | None,
    *,
    hardware: Iterable[str] = (),
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Frame:
    """What stands now, the worst first where there is too much; `checked` answers a `check_now`."""
    ordered = sorted(findings, key=_badness)
    quiet = [finding for finding in ordered if finding.is_quiet]
    passed = [finding.check for finding in quiet if finding.outcome is Outcome.PASSED]
    skipped = [finding.check for finding in quiet if finding.outcome is Outcome.SKIPPED]
    return {
        "t": "report",
        "findings": [finding_record(one) for one in ordered if not one.is_quiet][:MAX_FINDINGS],
        "passed": passed[:MAX_CHECKS],
        "skipped": skipped[:MAX_CHECKS],
        "hardware": [printable(one, MAX_NAME) for one in hardware][:MAX_HARDWARE],
        "versions": dict(list(versions.items())[:MAX_CHECKS]),
        "checked": checked,
    }


def report_of(frame: Frame) -> Report:
    """Raises Malformed."""
    versions = record_of(frame.get("versions", {}))
    if len(versions) > MAX_CHECKS:
        raise Malformed(f"versions has more than {MAX_CHECKS} entries")
    return Report(
        findings=tuple(finding_of(value) for value in items(frame, "findings", MAX_FINDINGS)),
        passed=_shared(frozenset(_names(frame, "passed", MAX_CHECKS))),
        skipped=_shared(frozenset(_names(frame, "skipped", MAX_CHECKS))),
        hardware=tuple(_names(frame, "hardware", MAX_HARDWARE)),
        versions=_mapping(tuple((sys.intern(_name(check)), text(versions, check, MAX_NAME)) for check in versions)),
        checked=None if frame.get("checked") is None else text(frame, "checked"),
    )


@lru_cache(maxsize=_SHARED)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """The same object for equal sets: the nodes of a cluster pass the same checks, and a set of 60 takes 4 KiB."""
    return names


@lru_cache(maxsize=_SHARED)
def _mapping(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The same object for equal items."""
    return MappingProxyType(dict(items))


def _names(frame: Frame, key: str, limit: int) -> list[str]:
    """Interned: thousands of agents name the same checks."""
    return [sys.intern(_name(value)) for value in items(frame, key, limit)]


def _name(value: object) -> str:
    return text({"name": value}, "name", MAX_NAME)


def answer_frame(ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> Frame:
    return {"t": "answer", "id": ask, "answer": answer.value, "exclude": sorted(exclude)}


def answer_of(frame: Frame) -> tuple[AskId, Answer, frozenset[NodeName]]:
    """Raises Malformed."""
    names = [text({"name": value}, "name", 64) for value in items(frame, "exclude", MAX_NAMES)]
    return AskId(text(frame, "id")), word(Answer, frame, "answer"), frozenset(NodeName(name) for name in names)


def check_now_frame(asked_at: float, budget_s: float) -> Frame:
    """Its id says when it was sent, in Unix seconds of the head's clock."""
    return {"t": "check_now", "id": repr(asked_at), "budget_s": budget_s}


def asked_at(report: Report) -> float | None:
    """When the `check_now` that the report answers was sent; None where it answers none."""
    try:
        at = float(report.checked or "nan")
    except ValueError:
        return None
    return at if math.isfinite(at) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGoOrder:
    """The head's order to end the idle slurmstepds of a job's lost run. `before` is in Unix s of the head's clock."""

    job: JobId
    restart: int
    before: float
    why: str


def let_go_frame(order: LetGo) -> Frame:
    why = printable(str(order.why), MAX_TEXT)
    return {"t": "let_go", "job": order.job, "restart": order.restart, "before": order.before, "why": why}


def let_go_of(frame: Frame) -> LetGoOrder:
    """Raises Malformed."""
    return LetGoOrder(
        job=JobId(whole(frame, "job", low=1)),
        restart=whole(frame, "restart", high=10**6),
        before=number(frame, "before"),
        why=text(frame, "why", MAX_TEXT),
    )


def withdraw_frame(ask: AskId) -> Frame:
    """The shim hung up: nobody waits for an answer any more."""
    return {"t": "withdraw", "id": ask}


def opted_frame(opted: Iterable[OptedIn]) -> Frame:
    return {"t": "opted", "opted": [opted_record(one) for one in opted]}


def _badness(finding: Finding) -> tuple[bool, int, str]:
    return not finding.is_bad, -finding.severity.rank, finding.check


def word(kind: Any, frame: Mapping[str, Any], key: str) -> Any:
    """The member of the enum `kind` that a field names. Raises Malformed."""
    try:
        return kind(frame.get(key))
    except ValueError:
        raise Malformed(f"{key}={shown(frame.get(key))} is not a word that is known here") from None
