"""What agent and head tell each other of elastic runs. What comes in is hostile.

Two orders go to the agent of the base's batch host (resize, submit); a word on each run comes from it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steward.adapters.wire.codec import items, number, text, whole
from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.messages import record_of
from steward.model.action import ResizeRun, SubmitReplica
from steward.model.elastic import MAX_SPEC, Activity, ElasticWord, FailedSubmit
from steward.model.elastic_spec import MAX_NODES
from steward.model.ids import JobId, NodeName
from steward.model.text import printable

MAX_WHY = 200
MAX_FAILED = 8
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[a-z0-9]{1,32}")
_ACTIVITIES = {one.value: one for one in Activity}
_MOST_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Go to `generation` with exactly these members; all ranks save first, for `grace_s` at most (0: at once)."""

    run: JobId
    generation: int
    members: frozenset[NodeName]
    grace_s: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Submit a replica job of `nodes` nodes; `minutes` 0: as long as the base's script says."""

    run: JobId
    token: str
    nodes: int
    grace_s: int
    minutes: int
    qos: str
    exclude: frozenset[NodeName]
    why: str


def elastic_order_frame(order: Resize | Submit) -> Frame:
    frame: Frame = {"t": "elastic", "run": order.run, "why": printable(order.why, MAX_WHY)}
    match order:
        case Resize():
            more = {"generation": order.generation, "members": sorted(order.members), "grace_s": order.grace_s}
            return {**frame, "order": "resize", **more}
        case Submit():
            size = {"token": order.token, "nodes": order.nodes, "grace_s": order.grace_s, "minutes": order.minutes}
            return {**frame, "order": "submit", **size, "qos": order.qos, "exclude": sorted(order.exclude)}


def run_order_frame(action: ResizeRun | SubmitReplica) -> Frame:
    """Of an action, for the agent."""
    if isinstance(action, ResizeRun):
        return elastic_order_frame(
            Resize(
                run=action.run,
                generation=action.generation,
                members=action.members,
                grace_s=action.grace_s,
                why=action.why.text,
            )
        )
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
    """Raises Malformed."""
    run, why = JobId(whole(frame, "run", low=1)), text(frame, "why", MAX_WHY)
    match text(frame, "order", 16):
        case "resize":
            return Resize(
                run=run,
                generation=whole(frame, "generation", low=1, high=2**31),
                members=_nodes(frame, "members"),
                grace_s=whole(frame, "grace_s", high=86_400),
                why=why,
            )
        case "submit":
            return Submit(
                run=run,
                token=_match(frame, "token", _TOKEN),
                nodes=whole(frame, "nodes", low=1, high=MAX_NODES),
                grace_s=whole(frame, "grace_s", high=86_400),
                minutes=whole(frame, "minutes", high=10**6),
                qos=text(frame, "qos", 64),
                exclude=_nodes(frame, "exclude"),
                why=why,
            )
        case other:
            raise Malformed(f"an elastic order of the unknown kind {other!r}")


def elastic_word_frame(word: ElasticWord) -> Frame:
    return {
        "t": "elastic",
        "run": word.run,
        "restart": word.restart,
        "uid": word.uid,
        "spec": word.spec,
        "state": word.state.value,
        "generation": word.generation,
        "members": sorted(word.members),
        "joined": sorted(word.joined),
        "leaving": sorted(word.leaving),
        "step": word.step,
        "saved_step": word.saved_step,
        "consumed": word.consumed,
        "failed": [{"token": one.token, "why": printable(one.why, MAX_WHY)} for one in word.failed[-MAX_FAILED:]],
        "timings": {"saved_s": word.saved_s, "up_s": word.up_s},
    }


def elastic_word_of(frame: Frame, node: NodeName, now: float) -> ElasticWord:
    """`node` is who says it. Raises Malformed."""
    state = text(frame, "state", 16)
    if state not in _ACTIVITIES:
        raise Malformed(f"state={state!r} is no state of an elastic run")
    timings = record_of(frame.get("timings", {}))
    return ElasticWord(
        run=JobId(whole(frame, "run", low=1)),
        restart=whole(frame, "restart", high=10**6),
        uid=whole(frame, "uid", high=2**32 - 1),
        node=node,
        spec=text(frame, "spec", MAX_SPEC),
        state=_ACTIVITIES[state],
        generation=whole(frame, "generation", high=2**31),
        members=_nodes(frame, "members"),
        joined=_nodes(frame, "joined"),
        leaving=_nodes(frame, "leaving"),
        step=_maybe_whole(frame, "step"),
        saved_step=_maybe_whole(frame, "saved_step"),
        consumed=_maybe_whole(frame, "consumed"),
        failed=tuple(_failed_of(one) for one in items(frame, "failed", MAX_FAILED)),
        saved_s=_maybe_seconds(timings, "saved_s"),
        up_s=_maybe_seconds(timings, "up_s"),
        at=now,
    )


def _failed_of(value: object) -> FailedSubmit:
    record = record_of(value)
    return FailedSubmit(token=_match(record, "token", _TOKEN), why=text(record, "why", MAX_WHY))


def _nodes(frame: Mapping[str, Any], key: str) -> frozenset[NodeName]:
    return frozenset(NodeName(_match({key: one}, key, _NODE)) for one in items(frame, key, MAX_NODES))


def _match(frame: Mapping[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    value = text(frame, key, 64)
    if not pattern.fullmatch(value):
        raise Malformed(f"{key}={value!r} is not a name that is allowed here")
    return value


def _maybe_whole(frame: Mapping[str, Any], key: str) -> int | None:
    return None if frame.get(key) is None else whole(frame, key)


def _maybe_seconds(record: Mapping[str, Any], key: str) -> float | None:
    return None if record.get(key) is None else min(max(number(record, key), 0.0), _MOST_S)
