"""A waiting shim as a frame and back, with the known lines of its job's log. What comes in is hostile."""

from collections.abc import Mapping
from typing import Any

from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.messages import items, mode_of, number, record_of, text, whole, word
from steward.model.ask import Ask, AskKind
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import Lean, LogSign
from steward.model.text import printable, shown

MAX_SIGNS = 16
MAX_SIGN_LINE = 200
_MAX_SIGN_NAME = 64


def ask_frame(ask: Ask) -> Frame:
    return {
        "t": "ask",
        "id": ask.id,
        "kind": ask.kind.value,
        "job": ask.job,
        "step": ask.step,
        "uid": ask.uid,
        "mode": ask.mode.text,
        "attempt": ask.attempt,
        "restart": ask.restart,
        "status": ask.status,
        "at": ask.at,
        "signs": [_sign_record(one) for one in ask.signs[:MAX_SIGNS]],
        "replay": ask.replay,
        "script_gone": ask.script_gone,
    }


def ask_of(frame: Frame, node: NodeName) -> Ask:
    """The ask in a frame from the agent of `node`. Raises Malformed."""
    return Ask(
        id=AskId(text(frame, "id")),
        kind=word(AskKind, frame, "kind"),
        job=JobId(whole(frame, "job", low=1)),
        step=text(frame, "step", 32),
        node=node,
        uid=whole(frame, "uid", high=2**32 - 1),
        mode=mode_of(frame),
        attempt=whole(frame, "attempt", high=10**6),
        restart=whole(frame, "restart", high=10**6),
        status=whole(frame, "status", high=0xFFFF),
        at=number(frame, "at"),
        signs=tuple(_sign_of(value) for value in items(frame, "signs", MAX_SIGNS)),
        replay=_yes_or_no(frame, "replay"),
        script_gone=_yes_or_no(frame, "script_gone") if "script_gone" in frame else False,
    )


def _sign_record(sign: LogSign) -> Mapping[str, Any]:
    return {
        "sign": printable(sign.sign, _MAX_SIGN_NAME),
        "lean": sign.lean.value,
        "strong": sign.strong,
        "line": printable(sign.line, MAX_SIGN_LINE),
        "order": sign.order,
    }


def _sign_of(value: object) -> LogSign:
    record = record_of(value)
    return LogSign(
        sign=text(record, "sign", _MAX_SIGN_NAME),
        lean=word(Lean, record, "lean"),
        strong=_yes_or_no(record, "strong"),
        line=text(record, "line", MAX_SIGN_LINE),
        order=whole(record, "order"),
    )


def _yes_or_no(record: Mapping[str, Any], key: str) -> bool:
    value = record.get(key)
    if not isinstance(value, bool):
        raise Malformed(f"{key}={shown(value)} is neither true nor false")
    return value
