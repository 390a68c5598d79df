"""The order to keep what a job's tasks are doing, and what an agent found, in pieces. What comes in is hostile."""

import re
from dataclasses import dataclass

from steward.adapters.wire.codec import text, whole
from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.setup_messages import is_token
from steward.model.action import CollectStacks
from steward.model.ids import JobId
from steward.model.resume_mode import STACK_SIGNALS
from steward.ports import Permanent

MAX_BUNDLE = 256 << 10
"""Characters of one node's part of a bundle."""
PIECE = 16_384
_TEXT = re.compile(r"^[\n\t -~]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksOrder:
    """`signal` is empty or one of those that a job may name; what is found is sent under `name`."""

    job: JobId
    name: str
    signal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundlePiece:
    """A part of what a node found, from character `offset` on: printable ASCII, line feeds and tabs."""

    name: str
    offset: int
    text: str
    is_last: bool


def stacks_frame(order: CollectStacks) -> Frame:
    """Raises Permanent for an order that no agent would take."""
    if not _is_sound(order.name, order.signal):
        raise Permanent(f"stacks of job {order.job} under {order.name[:80]!r} with {order.signal!r}: no such order")
    return {"t": "stacks", "job": order.job, "name": order.name, "signal": order.signal}


def stacks_of(frame: Frame) -> StacksOrder:
    """Raises Malformed."""
    order = StacksOrder(
        job=JobId(whole(frame, "job", low=1)), name=text(frame, "name"), signal=text(frame, "signal", 8)
    )
    if not _is_sound(order.name, order.signal):
        raise Malformed(f"{order} is no order for an agent")
    return order


def bundle_frames(name: str, content: str) -> list[Frame]:
    """In pieces; what is over the limit is cut off, and there is always a last one."""
    kept = content[:MAX_BUNDLE]
    starts = range(0, max(len(kept), 1), PIECE)
    return [
        {"t": "bundle", "name": name, "offset": at, "text": kept[at : at + PIECE], "last": at == starts[-1]}
        for at in starts
    ]


def bundle_of(frame: Frame) -> BundlePiece:
    """Raises Malformed."""
    name, body = text(frame, "name"), frame.get("text")
    if not is_token(name):
        raise Malformed(f"name={name!r} is no name of a bundle")
    if not isinstance(body, str) or len(body) > PIECE or not _TEXT.match(body):
        raise Malformed(f"text is not a piece of a bundle of at most {PIECE} characters")
    offset = whole(frame, "offset", high=MAX_BUNDLE - len(body))
    return BundlePiece(name=name, offset=offset, text=body, is_last=frame.get("last") is True)


def _is_sound(name: str, signal: str) -> bool:
    return is_token(name) and (not signal or signal in STACK_SIGNALS)
