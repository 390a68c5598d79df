"""Messages between agent and head on elastic runs. Input is hostile.

Two orders go to the agent of the base's batch host (resize, submit); the agent sends the state of each run.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from steward.adapters.wire.codec import FrameCodec, text
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.bounds import Job, MaxLen, Printable, Range, Seconds, Sparse
from steward.model.elastic import ElasticWord, Nodes, ReplicaToken
from steward.model.elastic_spec import MAX_NODES
from steward.model.ids import NodeName

if TYPE_CHECKING:
    from steward.model.action import ResizeRun, SubmitReplica

_Grace = Annotated[int, Range(high=86_400)]
_Passed = Annotated[float | None, Seconds(1e9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """An order for a new generation with exactly these members; all ranks save first, within `grace_s` (0: no save)."""

    run: Job
    generation: Annotated[int, Range(1, 2**31)]
    members: Nodes
    grace_s: _Grace
    why: Annotated[str, Printable(200)]
    patient: Annotated[bool, Sparse()] = False
    """Whether no process is stopped before the save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """An order to submit a replica job of `nodes` nodes; `minutes` 0 means the time limit in the base's script."""

    run: Job
    token: ReplicaToken
    nodes: Annotated[int, Range(1, MAX_NODES)]
    grace_s: _Grace
    minutes: Annotated[int, Range(high=10**6)]
    qos: Annotated[str, MaxLen(64)]
    exclude: Nodes
    why: Annotated[str, Printable(200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timings:
    """The times of a run's last change of size, in an object of their own."""

    saved_s: _Passed = None
    up_s: _Passed = None
    again_s: _Passed = None


_RESIZE = FrameCodec(Resize)
_SUBMIT = FrameCodec(Submit)
_WORD = FrameCodec(ElasticWord, "elastic")
_TIMINGS = FrameCodec(_Timings)


def elastic_order_frame(order: Resize | Submit) -> Frame:
    kind, record = ("resize", _RESIZE.write(order)) if isinstance(order, Resize) else ("submit", _SUBMIT.write(order))
    return {"t": "elastic", "run": order.run, "why": record["why"], "order": kind, **record}


def resize_frame(action: "ResizeRun") -> Frame:
    """Return the frame that orders the action of the agent."""
    return elastic_order_frame(
        Resize(
            run=action.run,
            generation=action.generation,
            members=action.members,
            grace_s=action.grace_s,
            why=action.why.text,
            patient=action.patient,
        )
    )


def submit_frame(action: "SubmitReplica") -> Frame:
    """Return the frame that orders the action of the agent."""
    return elastic_order_frame(
        Submit(
            run=action.run,
            token=action.token,
            nodes=action.nodes,
            grace_s=action.grace_s,
            minutes=action.minutes,
            qos=action.qos,
            exclude=action.exclude,
            why=action.why.text,
        )
    )


def elastic_order_of(frame: Frame) -> Resize | Submit:
    """Return the order in the frame. Raises Malformed."""
    match text(frame, "order", 16):
        case "resize":
            return _RESIZE.read(frame)
        case "submit":
            return _SUBMIT.read(frame)
        case other:
            raise Malformed(f"an elastic order of the unknown kind {other!r}")


def elastic_word_frame(word: ElasticWord) -> Frame:
    timings = _Timings(saved_s=word.saved_s, up_s=word.up_s, again_s=word.again_s)
    return {**_WORD.write(word), "timings": _TIMINGS.write(timings)}


def elastic_word_of(frame: Frame, node: NodeName, now: float) -> ElasticWord:
    """Return the state of a run in the frame, as `node` reports it. Raises Malformed."""
    timings = _TIMINGS.read(frame.get("timings", {}))
    took = timings
    return _WORD.read(frame, node=node, at=now, saved_s=took.saved_s, up_s=took.up_s, again_s=took.again_s)
