"""What agent and head tell each other of opted-in jobs that run: tasks that ended badly, a resumed job's past, and
which jobs the site opts in by itself. What comes in is hostile."""

from collections.abc import Iterable
from typing import Any

from steward.adapters.wire.codec import items, number, text, whole
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.messages import mode_of, record_of
from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts, TaskExit
from steward.model.resume_mode import SiteDefault
from steward.model.text import printable

MAX_EXITS = 64
MAX_DEFAULTS = 64
MAX_FACT_NODES = 256
MAX_REASON = 200
MAX_PATH = 255
_MAX_WORD = 64


def exits_frame(exits: Iterable[TaskExit], now: float) -> Frame:
    """`now` is the agent's own clock, by which the exits' times are; what is sent is how long ago they were."""
    return {"t": "exits", "exits": [_exit_record(one, now) for one in exits]}


def exits_of(frame: Frame, node: NodeName, now: float) -> tuple[TaskExit, ...]:
    """With times by the clock of `now`. Raises Malformed."""
    return tuple(_exit_of(value, node, now) for value in items(frame, "exits", MAX_EXITS))


def _exit_record(one: TaskExit, now: float) -> dict[str, Any]:
    return {
        "job": one.job,
        "restart": one.restart,
        "step": one.step,
        "task": one.task,
        "status": one.status,
        "ago": max(now - one.at, 0.0),
    }


def _exit_of(value: object, node: NodeName, now: float) -> TaskExit:
    record = record_of(value)
    return TaskExit(
        job=JobId(whole(record, "job", low=1)),
        restart=whole(record, "restart", high=10**6),
        step=text(record, "step", 32),
        node=node,
        task=whole(record, "task", high=2**32 - 1),
        status=whole(record, "status", high=0xFFFF),
        at=now - max(number(record, "ago"), 0.0),
    )


def facts_wanted_frame(job: JobId) -> Frame:
    return {"t": "facts?", "job": job}


def facts_wanted_of(frame: Frame) -> JobId:
    """Raises Malformed."""
    return JobId(whole(frame, "job", low=1))


def facts_frame(job: JobId, facts: ResumeFacts | None) -> Frame:
    """None: nothing is known of the job."""
    if facts is None:
        return {"t": "facts", "job": job, "facts": None}
    record = {
        "uid": facts.uid,
        "resumes": facts.resumes,
        "culprits": sorted(facts.culprits)[:MAX_FACT_NODES],
        "excluded": sorted(facts.excluded)[:MAX_FACT_NODES],
        "reason": printable(facts.reason, MAX_REASON),
        "checkpoint": facts.checkpoint if printable(facts.checkpoint, MAX_PATH) == facts.checkpoint else "",
        "checkpoint_step": facts.checkpoint_step,
        "resumed": printable(facts.resumed, MAX_REASON),
    }
    return {"t": "facts", "job": job, "facts": record}


def facts_of(frame: Frame) -> tuple[JobId, ResumeFacts | None]:
    """Raises Malformed."""
    job = JobId(whole(frame, "job", low=1))
    if frame.get("facts") is None:
        return job, None
    record = record_of(frame["facts"])
    step = None if record.get("checkpoint_step") is None else whole(record, "checkpoint_step")
    return job, ResumeFacts(
        uid=whole(record, "uid", high=2**32 - 1),
        resumes=whole(record, "resumes", high=10**6),
        culprits=_nodes(record, "culprits"),
        excluded=_nodes(record, "excluded"),
        reason=text(record, "reason", MAX_REASON),
        checkpoint=text(record, "checkpoint", MAX_PATH),
        checkpoint_step=step,
        resumed=text(record, "resumed", MAX_REASON),
    )


def _nodes(record: Any, key: str) -> tuple[NodeName, ...]:
    names = items(record, key, MAX_FACT_NODES)
    return tuple(NodeName(text({"name": name}, "name", 64)) for name in names)


def defaults_records(defaults: Iterable[SiteDefault]) -> list[dict[str, str]]:
    """Part of the head's welcome; the first that fits a job counts."""
    return [
        {"partition": one.partition, "account": one.account, "qos": one.qos, "mode": one.mode.text} for one in defaults
    ][:MAX_DEFAULTS]


def defaults_of(frame: Frame) -> tuple[SiteDefault, ...]:
    """Raises Malformed."""
    return tuple(_default_of(value) for value in items(frame, "defaults", MAX_DEFAULTS))


def _default_of(value: object) -> SiteDefault:
    record = record_of(value)
    return SiteDefault(
        partition=text(record, "partition", _MAX_WORD),
        account=text(record, "account", _MAX_WORD),
        qos=text(record, "qos", _MAX_WORD),
        mode=mode_of(record),
    )
