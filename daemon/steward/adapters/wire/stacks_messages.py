"""The order to keep what a job's tasks are doing, and what an agent found, in pieces. What comes in is hostile."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from steward.adapters.wire.codec import Codec
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.bounds import Called, Job, Lenient, Lines, MaxLen, Range, Token, is_token
from steward.model.resume_mode import STACK_SIGNALS
from steward.ports import Permanent

if TYPE_CHECKING:
    from steward.model.action import CollectStacks

MAX_BUNDLE = 256 << 10
"""Characters of one node's part of a bundle."""
PIECE = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksOrder:
    """`signal` is empty or one of those that a job may name; what is found is sent under `name`."""

    job: Job
    name: str
    signal: Annotated[str, MaxLen(8)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundlePiece:
    """A part of what a node found, from character `offset` on: printable ASCII, line feeds and tabs."""

    name: Token
    offset: Annotated[int, Range(high=MAX_BUNDLE)]
    text: Annotated[str, Lines(PIECE)]
    is_last: Annotated[bool, Called("last"), Lenient()]


_ORDER = Codec(StacksOrder, "stacks")
_PIECES = Codec(BundlePiece, "bundle")


def stacks_frame(order: "CollectStacks") -> Frame:
    """Raises Permanent for an order that no agent would take."""
    if not _is_sound(order.name, order.signal):
        raise Permanent(f"stacks of job {order.job} under {order.name[:80]!r} with {order.signal!r}: no such order")
    return _ORDER.write(StacksOrder(job=order.job, name=order.name, signal=order.signal))


def stacks_of(frame: Frame) -> StacksOrder:
    """Raises Malformed."""
    order = _ORDER.read(frame)
    if not _is_sound(order.name, order.signal):
        raise Malformed(f"{order} is not an order for an agent")
    return order


def bundle_frames(name: str, content: str) -> list[Frame]:
    """In pieces; what is over the limit is cut off, and there is always a last one."""
    kept = content[:MAX_BUNDLE]
    starts = range(0, max(len(kept), 1), PIECE)
    return [
        _PIECES.write(BundlePiece(name=name, offset=at, text=kept[at : at + PIECE], is_last=at == starts[-1]))
        for at in starts
    ]


def bundle_of(frame: Frame) -> BundlePiece:
    """Raises Malformed."""
    piece = _PIECES.read(frame)
    if piece.offset + len(piece.text) > MAX_BUNDLE:
        raise Malformed(f"offset={piece.offset} with {len(piece.text)} characters is over the {MAX_BUNDLE} of a bundle")
    return piece


def _is_sound(name: str, signal: str) -> bool:
    return is_token(name) and (not signal or signal in STACK_SIGNALS)
