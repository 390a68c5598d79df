"""Messages between agent and head on elastic runs. Input is hostile.

Two orders go to the agent of the base's batch host (resize, submit); the agent sends the state of each run.
"""

from dataclasses import dataclass
from typing import Annotated

from steward.adapters.codec import FrameCodec, text_field
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.agent_action import ResizeRun, SubmitReplica
from steward.model.bounds import Seconds
from steward.model.elastic import ElasticWord
from steward.model.ids import Key, NodeName

UNSENT = Key("")
"""The key of an action that came with a frame: the head alone needs keys."""
_Passed = Annotated[float | None, Seconds(1e9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timings:
    """The times of a run's last change of size, as an object of their own in the frame."""

    saved_s: _Passed = None
    up_s: _Passed = None
    again_s: _Passed = None


_RESIZE = FrameCodec(ResizeRun)
_SUBMIT = FrameCodec(SubmitReplica)
_WORD = FrameCodec(ElasticWord, "elastic")
_TIMINGS = FrameCodec(_Timings)


def elastic_order_frame(order: ResizeRun | SubmitReplica) -> Frame:
    kind, record = (
        ("resize", _RESIZE.write(order)) if isinstance(order, ResizeRun) else ("submit", _SUBMIT.write(order))
    )
    return {"t": "elastic", "run": order.run, "why": record["why"], "order": kind, **record}


def elastic_order_of(frame: Frame, node: NodeName) -> ResizeRun | SubmitReplica:
    """Return the order in a frame to the agent of `node`. Raises Malformed."""
    match text_field(frame, "order", 16):
        case "resize":
            return _RESIZE.read(frame, key=UNSENT, node=node)
        case "submit":
            return _SUBMIT.read(frame, key=UNSENT, node=node)
        case other:
            raise Malformed(f"an elastic order of the unknown kind {other!r}")


def elastic_word_frame(word: ElasticWord) -> Frame:
    timings = _Timings(saved_s=word.saved_s, up_s=word.up_s, again_s=word.again_s)
    return {**_WORD.write(word), "timings": _TIMINGS.write(timings)}


def elastic_word_of(frame: Frame, node: NodeName, now: float) -> ElasticWord:
    """Return the state of a run in the frame, as `node` reports it. Raises Malformed."""
    took = _TIMINGS.read(frame.get("timings", {}))
    return _WORD.read(frame, node=node, at=now, saved_s=took.saved_s, up_s=took.up_s, again_s=took.again_s)
