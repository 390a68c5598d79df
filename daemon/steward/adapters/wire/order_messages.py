"""Orders that an agent carries out, and their results: actions, sent as they are, and a look at another node's slurmd.

Input is hostile until it is read. The order of a setup holds the whole cluster's resource_config and may be longer than
a frame: it travels compressed, in parts.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from steward.adapters.codec import FrameCodec
from steward.adapters.wire.elastic_messages import UNSENT, elastic_order_frame, elastic_order_of
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.agent_action import (
    AgentAction,
    AgentsAction,
    CollectStacks,
    LetGo,
    MendNode,
    ResizeRun,
    SetUpNode,
    SubmitReplica,
)
from steward.model.bounds import Lines, MaxLen, Node, Range, Token
from steward.model.ids import NodeName
from steward.model.mend import MendReport, is_possible_mend
from steward.model.setup import SetupReport
from steward.model.why import Why
from steward.model.witness import Witness
from steward.ports import Permanent

_LET_GO = FrameCodec(LetGo, "let_go")
_STACKS = FrameCodec(CollectStacks, "stacks")
_MEND = FrameCodec(MendNode, "mend")
_MENDED = FrameCodec(MendReport, "mended")
_ORDERED = Why.heard("an order of the head")


def order_frames(order: AgentAction | AgentsAction) -> list[Frame]:
    """Return the frames of an action for agents. Raises Permanent for one that no agent would accept."""
    if isinstance(order, SetUpNode):
        return _set_up_frames(order)
    if (form := _FORMS.get(type(order))) is None:
        raise Permanent(f"{type(order).__name__} is not an order for an agent")
    frame = form.write(order)
    form.read(frame, NodeName(""))
    return [frame]


def let_go_of(frame: Frame, node: NodeName) -> LetGo:
    """Return the order in a frame to the agent of `node`. Raises Malformed."""
    return _LET_GO.read(frame, key=UNSENT, nodes=frozenset({node}))


def stacks_of(frame: Frame, node: NodeName) -> CollectStacks:
    """Return the order in a frame to the agent of `node`. Raises Malformed."""
    return _STACKS.read(frame, key=UNSENT, why=_ORDERED, nodes=frozenset({node}))


def mend_of(frame: Frame, node: NodeName) -> MendNode:
    """Return the order in a frame to the agent of `node`. Raises Malformed.

    The target has the form of a unit's name or of a GPU; whether the agent may touch it is not checked here.
    """
    order = _MEND.read(frame, key=UNSENT, why=_ORDERED, node=node)
    if not is_possible_mend(order.rung, order.target):
        raise Malformed(f"{order.rung.value} of {order.target!r} is not an order for an agent")
    return order


@dataclass(frozen=True, slots=True)
class _OrderForm:
    """The frame of one type of order, and what the agent makes of it."""

    write: Callable[[Any], Frame]
    read: Callable[[Frame, NodeName], AgentAction | AgentsAction]


_FORMS: Mapping[type, _OrderForm] = {
    LetGo: _OrderForm(_LET_GO.write, let_go_of),
    CollectStacks: _OrderForm(_STACKS.write, stacks_of),
    MendNode: _OrderForm(_MEND.write, mend_of),
    ResizeRun: _OrderForm(elastic_order_frame, elastic_order_of),
    SubmitReplica: _OrderForm(elastic_order_frame, elastic_order_of),
}
"""Each type of order but SetUpNode, which may take several frames."""


def mended_frame(report: MendReport) -> Frame:
    return _MENDED.write(report)


def mended_of(frame: Frame) -> MendReport:
    """Return the report in the frame. Raises Malformed."""
    return _MENDED.read(frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookOrder:
    """An order to look at a node's slurmd, at the address and port that Slurm gives for it."""

    node: Node
    address: Annotated[str, MaxLen(255)]
    port: Annotated[int, Range(1, 65535)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The result of an agent's look."""

    node: Node
    result: Witness


_LOOK = FrameCodec(LookOrder, "look")
_LOOKED = FrameCodec(_Looked, "looked")


def look_frame(order: LookOrder) -> Frame:
    return _LOOK.write(order)


def look_of(frame: Frame) -> LookOrder:
    """Return the order in the frame. Raises Malformed."""
    return _LOOK.read(frame)


def looked_frame(node: NodeName, result: Witness) -> Frame:
    return _LOOKED.write(_Looked(node=node, result=result))


def looked_of(frame: Frame) -> tuple[NodeName, Witness]:
    """Return the node and the result of the look. Raises Malformed."""
    told = _LOOKED.read(frame)
    return told.node, told.result


MAX_LOG = 1 << 20
"""The most characters of one setup's output that are sent to the head and kept there."""
CHUNK = 16_384
"""The most characters of output in one frame."""
_PART = 40_000
_MAX_PARTS = 60
_MAX_ORDER = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """Output of a setup from character `offset` on: printable ASCII, line feeds and tabs."""

    token: Token
    offset: Annotated[int, Range(high=MAX_LOG)]
    text: Annotated[str, Lines(CHUNK)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of a compressed order: number `part` of `parts`."""

    token: Token
    part: Annotated[int, Range(high=_MAX_PARTS)]
    parts: Annotated[int, Range(1, _MAX_PARTS)]
    data: Annotated[str, MaxLen(_PART)]


_ORDER = FrameCodec(SetUpNode)
_PARTS = FrameCodec(_Part, "set_up")
_REPORT = FrameCodec(SetupReport, "setup")
_LOG = FrameCodec(LogChunk, "setup_log")


def order_record(order: SetUpNode) -> Frame:
    """Return the order as a JSON object, for the disk and the wire."""
    return _ORDER.write(order)


def order_of(record: object, node: NodeName) -> SetUpNode:
    """Return the order in a record for `node`. Raises Malformed."""
    return _ORDER.read(record, key=UNSENT, why=_ORDERED, node=node)


def _set_up_frames(order: SetUpNode) -> list[Frame]:
    """Return the frames of the order, in parts. Raises Permanent for an order that no agent would accept."""
    record = order_record(order)
    order_of(record, order.node)
    data = base64.b64encode(zlib.compress(json.dumps(record).encode())).decode("ascii")
    parts = [data[at : at + _PART] for at in range(0, len(data), _PART)]
    if len(parts) > _MAX_PARTS:
        raise Permanent(f"the setup of {order.node} takes {len(data)} characters; {_MAX_PARTS * _PART} is the limit")
    return [
        _PARTS.write(_Part(token=order.token, part=number, parts=len(parts), data=part))
        for number, part in enumerate(parts)
    ]


@dataclass(slots=True)
class SetUpParts:
    """The parts of an order so far. A part with number 0 begins a new order, whatever came before."""

    _token: str = ""
    _got: list[str] = field(default_factory=list)

    def take(self, frame: Frame, node: NodeName) -> SetUpNode | None:
        """Take in a part, and return the order for `node` if it was the last one. Raises Malformed."""
        part = _PARTS.read(frame)
        if part.part == 0:
            self._token, self._got = part.token, []
        if part.token != self._token or part.part != len(self._got) or part.part >= part.parts:
            raise Malformed(f"part {part.part} of the setup {part.token} is out of order")
        self._got.append(part.data)
        if part.part + 1 < part.parts:
            return None
        data, self._token, self._got = "".join(self._got), "", []
        order = order_of(_unpacked(data), node)
        if order.token != part.token:
            raise Malformed(f"the setup {part.token} has another token inside, {order.token}")
        return order


def setup_frame(report: SetupReport) -> Frame:
    return _REPORT.write(report)


def setup_of(frame: Frame) -> SetupReport:
    """Return the report in the frame. Raises Malformed."""
    return _REPORT.read(frame)


def setup_log_frame(chunk: LogChunk) -> Frame:
    return _LOG.write(chunk)


def setup_log_of(frame: Frame) -> LogChunk:
    """Return the chunk of output in the frame. Raises Malformed."""
    chunk = _LOG.read(frame)
    if chunk.offset + len(chunk.text) > MAX_LOG:
        raise Malformed(f"offset={chunk.offset} with {len(chunk.text)} characters is over the {MAX_LOG} of a log")
    return chunk


def _unpacked(data: str) -> Mapping[str, Any]:
    unpack = zlib.decompressobj()
    try:
        body = unpack.decompress(base64.b64decode(data, validate=True), _MAX_ORDER)
        record = json.loads(body) if unpack.eof else None
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise Malformed(f"a setup that cannot be unpacked ({type(error).__name__})") from None
    if not isinstance(record, dict):
        raise Malformed(f"a setup that is not an object, or longer than {_MAX_ORDER} bytes")
    return record
