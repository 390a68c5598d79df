"""What head and agent tell each other of a node's setup, as frames and back. What comes in is hostile until here.

An order holds the whole cluster's resource_config and may be longer than a frame: it travels compressed, in parts.
"""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steward.adapters.wire.codec import items, number, text, whole
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.action import SetUpNode
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.text import printable, shown
from steward.ports import Permanent

MAX_LINES = 20
MAX_LINE = 200
MAX_STEP = 64
MAX_TEXT = 400
MAX_LOG = 1 << 20
"""Characters of one setup's output that the head is sent and keeps."""
CHUNK = 16_384
"""Characters of it in one frame at most."""
_TOKEN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
_LOG = re.compile(r"^[\n\t -~]*\Z")
_PART = 40_000
_MAX_PARTS = 60
_MAX_ORDER = 16 << 20
_MAX_URL = 2048
_MAX_NAME = 512
_MAX_FEATURES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpOrder:
    """The head's order to run lifecycle scripts, as the agent has it; `token` is fit for a file's name."""

    token: str
    lifecycle: Lifecycle
    timeout_s: float
    resource_config: str
    provisioning: str = ""
    features: tuple[str, ...] = ()


def is_token(word: str) -> bool:
    return _TOKEN.match(word) is not None


def order_record(order: SetUpOrder) -> dict[str, Any]:
    """As a JSON object, for the disk and the wire."""
    return {
        "token": order.token,
        "source": order.lifecycle.source,
        "on_create": order.lifecycle.on_create,
        "on_init_complete": order.lifecycle.on_init_complete,
        "sha256": order.lifecycle.sha256,
        "timeout_s": order.timeout_s,
        "resource_config": order.resource_config,
        "provisioning": order.provisioning,
        "features": list(order.features),
    }


def order_of(record: Mapping[str, Any]) -> SetUpOrder:
    """Raises Malformed."""
    return SetUpOrder(
        token=_token(record),
        lifecycle=Lifecycle(
            source=text(record, "source", _MAX_URL),
            on_create=text(record, "on_create", _MAX_NAME),
            on_init_complete=text(record, "on_init_complete", _MAX_NAME),
            sha256=text(record, "sha256", 64),
        ),
        timeout_s=number(record, "timeout_s"),
        resource_config=_document(record, "resource_config"),
        provisioning=_document(record, "provisioning"),
        features=tuple(text({"feature": one}, "feature", 128) for one in items(record, "features", _MAX_FEATURES)),
    )


def set_up_frames(order: SetUpNode) -> list[Frame]:
    """The order in parts. Raises Permanent for one that no agent would take."""
    if not is_token(order.token):
        raise Permanent(f"the setup's token {order.token[:130]!r} is not made of letters, digits, '.', '_' and '-'")
    wanted = SetUpOrder(
        token=order.token,
        lifecycle=order.lifecycle,
        timeout_s=order.timeout_s,
        resource_config=order.resource_config,
        provisioning=order.provisioning,
        features=tuple(sorted(order.features)),
    )
    data = base64.b64encode(zlib.compress(json.dumps(order_record(wanted)).encode())).decode("ascii")
    parts = [data[at : at + _PART] for at in range(0, len(data), _PART)]
    if len(parts) > _MAX_PARTS:
        raise Permanent(f"the setup of {order.node} takes {len(data)} characters; {_MAX_PARTS * _PART} is the limit")
    return [
        {"t": "set_up", "token": order.token, "part": number, "parts": len(parts), "data": part}
        for number, part in enumerate(parts)
    ]


@dataclass(slots=True)
class SetUpParts:
    """Puts the parts of an order together again. A first part begins anew, whatever came before."""

    _token: str = ""
    _got: list[str] = field(default_factory=list)

    def take(self, frame: Frame) -> SetUpOrder | None:
        """The order when this was its last part. Raises Malformed."""
        token, part = _token(frame), whole(frame, "part", high=_MAX_PARTS)
        parts = whole(frame, "parts", low=1, high=_MAX_PARTS)
        if part == 0:
            self._token, self._got = token, []
        if token != self._token or part != len(self._got) or part >= parts:
            raise Malformed(f"part {part} of the setup {token} came out of turn")
        self._got.append(text(frame, "data", _PART))
        if part + 1 < parts:
            return None
        data, self._token, self._got = "".join(self._got), "", []
        order = order_of(_unpacked(data))
        if order.token != token:
            raise Malformed(f"the setup {token} says that it is {order.token}")
        return order


def setup_frame(report: SetupReport) -> Frame:
    return {
        "t": "setup",
        "token": report.token,
        "state": report.state.value,
        "step": printable(report.step, MAX_STEP),
        "exit_status": report.exit_status,
        "why": printable(report.why, MAX_TEXT),
        "lines": [printable(line, MAX_LINE) for line in report.lines[-MAX_LINES:]],
        "at": report.at,
    }


def setup_of(frame: Mapping[str, Any]) -> SetupReport:
    """Raises Malformed."""
    status = frame.get("exit_status")
    try:
        state = SetupState(frame.get("state"))
    except ValueError:
        raise Malformed(f"state={shown(frame.get('state'))} is no state of a setup") from None
    return SetupReport(
        token=_token(frame),
        state=state,
        step=text(frame, "step", MAX_STEP),
        exit_status=None if status is None else whole(frame, "exit_status", low=-255, high=255),
        why=text(frame, "why", MAX_TEXT),
        lines=tuple(text({"line": line}, "line", MAX_LINE) for line in items(frame, "lines", MAX_LINES)),
        at=number(frame, "at"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """Output of a setup from character `offset` on: printable ASCII, line feeds and tabs."""

    token: str
    offset: int
    text: str


def setup_log_frame(chunk: LogChunk) -> Frame:
    return {"t": "setup_log", "token": chunk.token, "offset": chunk.offset, "text": chunk.text}


def setup_log_of(frame: Frame) -> LogChunk:
    """Raises Malformed."""
    body = frame.get("text")
    if not isinstance(body, str) or len(body) > CHUNK or not _LOG.match(body):
        raise Malformed(f"text is not a piece of a log of at most {CHUNK} characters")
    offset = whole(frame, "offset", high=MAX_LOG - len(body))
    return LogChunk(token=_token(frame), offset=offset, text=body)


def _token(record: Mapping[str, Any]) -> str:
    token = text(record, "token")
    if not is_token(token):
        raise Malformed(f"token={token!r} is not made of letters, digits, '.', '_' and '-'")
    return token


def _document(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key} is not a text")
    return value


def _unpacked(data: str) -> Mapping[str, Any]:
    unpack = zlib.decompressobj()
    try:
        body = unpack.decompress(base64.b64decode(data, validate=True), _MAX_ORDER)
        record = json.loads(body) if unpack.eof else None
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise Malformed(f"a setup that cannot be unpacked ({type(error).__name__})") from None
    if not isinstance(record, dict):
        raise Malformed(f"a setup that is no object, or longer than {_MAX_ORDER} bytes")
    return record
