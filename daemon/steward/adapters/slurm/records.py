"""Slurm's JSON answers, of any version, as model values. JSON, because text is no safe ground: a job's name may hold
newlines and `JobId=1 JobState=FAILED`, and every text format of scontrol and squeue prints it as it is.

An answer that cannot be read raises Retryable as a whole, as does one with a node that cannot. A job that cannot be
read is left out and told of: what stands in its record is its user's in part, and must not hide all others' jobs.
"""

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from sys import intern
from typing import Any, TypedDict, TypeVar

from steward.adapters.process import show
from steward.adapters.slurm import record_form
from steward.adapters.slurm.record_form import GRES, JOB, NODE
from steward.adapters.slurm.words import expand, expand_users
from steward.model.deep import DEEP_PREFIX
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase, Reason
from steward.ports import Retryable

log = logging.getLogger(__name__)

Json = Mapping[str, Any]
T = TypeVar("T")

_NODE_BASES = {base.value: base for base in NodeBase}
_JOB_STATES = {state.value: state for state in JobState}
_HIDDEN_BASE = {
    "CONFIGURING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
}
"""22.05 prints only the flag: these go with one base state."""
OVER = frozenset(JobState) - {JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN}
"""Before its end a job's `end_time` is only what its time limit foresees."""
CORE_DUMPED = 0x80
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?(?::([1-9][0-9]{0,8}))?")
_NO_EXTRA: dict[str, str] = {}


def nodes(answer: str) -> dict[NodeName, Node]:
    """Every node. Raises Retryable when the answer is no complete one."""
    return {node.name: node for node in _each(answer, "nodes", _node)}


def jobs(answer: str) -> dict[JobId, Job]:
    """Every job. Raises Retryable as above; no job at all is a real answer."""
    return {job.id: job for job in _readable(_each(answer, "jobs", _job_or_why))}


def some_jobs(answer: str) -> dict[JobId, Job]:
    """The jobs that were asked for by id. Such an answer has no time of update: one without jobs may also be no
    answer."""
    return {job.id: job for job in _readable(_each(answer, "jobs", _job_or_why, whole=False))}


def _job_or_why(record: Json) -> Job | Retryable:
    try:
        return _one(record, "jobs", _job)
    except Retryable as error:
        return error


def _readable(found: Iterable[Job | Retryable]) -> Iterator[Job]:
    """The jobs that can be read. Raises Retryable where none can: then it is not a job that is odd, it is Slurm."""
    errors, count = [], 0
    for one in found:
        if isinstance(one, Retryable):
            errors.append(one)
        else:
            count += 1
            yield one
    if errors and not count:
        raise errors[0]
    for error in errors:
        log.warning("a job is left out: %s", error)


def _each(answer: str, key: str, read: Callable[[Json], T], *, whole: bool = True) -> list[T]:
    try:
        found, rest = read_records(answer, key, lambda record: _one(record, key, read))
        errors, updated = rest.get("errors"), _number(rest.get("last_update", 1))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Retryable(f"cannot read Slurm's {key}: {show(repr(error))} in {show(answer[:200])!r}") from error
    if errors:
        raise Retryable(f"Slurm could not tell its {key}: {show(json.dumps(errors))}")
    if whole and updated == 0:
        raise Retryable(f"slurmctld did not answer: {key} that were never updated are not believed")
    return found


def _one(record: Json, key: str, read: Callable[[Json], T]) -> T:
    try:
        return read(record)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Retryable(
            f"cannot read one of Slurm's {key}: {show(repr(error))} in {show(json.dumps(record))!r}"
        ) from error


def _node(record: Json) -> Node:
    base, flags = node_state(_words(record["state"]) + _words(record.get("state_flags")))
    return Node(
        name=NodeName(_name(record["name"])),
        base=base,
        flags=flags,
        reason=_reason(record) if out_of_service(base, flags) else None,
        partitions=frozenset(each for each in _list(record["partitions"]) if not each.startswith(DEEP_PREFIX)),
        features=frozenset(_list(record["features"])),
        active_features=frozenset(_list(record.get("active_features", record["features"]))),
        address=_text(record["address"]),
        port=_number(record["port"]) or 0,
        cpus=_number(record["cpus"]) or 0,
        memory_mb=_number(record["real_memory"]) or 0,
        gres=_text(record.get("gres")),
        boot_time=_time(record["boot_time"]),
        slurmd_started=_time(record["slurmd_start_time"]),
        responding="NOT_RESPONDING" not in flags,
        extra=extra(_text(record["name"]), _text(record.get("hostname"))),
    )


def extra(name: str, hostname: str) -> dict[str, str]:
    """The host name of the node's machine, where it is not the node's name."""
    return {"hostname": hostname} if hostname and hostname != name else _NO_EXTRA


def node_state(words: Sequence[str]) -> tuple[NodeBase, frozenset[str]]:
    """The base state, which comes first, and the flags; a base that we do not know is kept as a flag of UNKNOWN."""
    base = _NODE_BASES.get(words[0], NodeBase.UNKNOWN)
    return base, frozenset(words if base is NodeBase.UNKNOWN else words[1:])


def out_of_service(base: NodeBase, flags: frozenset[str]) -> bool:
    """24.11 keeps the reason of a node that was resumed: only a node out of service has one that counts."""
    return base in (NodeBase.DOWN, NodeBase.ERROR, NodeBase.UNKNOWN) or bool(
        flags & {"DRAIN", "FAIL", "INVALID", "INVALID_REG", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
    )


def _reason(record: Json) -> Reason | None:
    text = _text(record["reason"])
    at, user = _time(record["reason_changed_at"]), _text(record["reason_set_by_user"])
    return Reason(text=text, user=user, at=at or 0.0) if text else None


def _job(record: Json) -> Job:
    state, flags = job_state(*_words(record["job_state"]))
    array_job, task = _array(record)
    het_job = _number(record["het_job_id"]) or None
    batch_host = _text(record["batch_host"])
    nodes = expand(_text(record["nodes"]))
    return Job(
        id=JobId(_whole(record["job_id"])),
        name=_text(record["name"]),
        state=state,
        user_id=_whole(record["user_id"]),
        flags=flags,
        reason=hold_reason(_text(record["state_reason"]), _text(record["state_description"])),
        nodes=nodes,
        batch_host=NodeName(batch_host) if batch_host else None,
        is_batch=bool(record["batch_flag"]),
        restarts=_whole(record["restart_cnt"]),
        requeue=bool(record["requeue"]),
        exit_status=_exit_status(record["exit_code"]),
        excluded=expand_users(_text(record["excluded_nodes"])),
        array_job_id=array_job,
        array_task=task,
        het_job_id=JobId(het_job) if het_job else None,
        partition=_word(record["partition"]),
        account=_word(record["account"]),
        node_count=_number(record["node_count"]) or 0,
        submitted=_time(record["submit_time"]),
        eligible=_time(record["eligible_time"]),
        started=_time(record["start_time"]),
        ended=_time(record["end_time"]) if state in OVER else None,
        admin_comment=_text(record["admin_comment"]),
        qos=_word(record["qos"]),
        time_limit_s=_minutes(record["time_limit"]),
        reservation=_word(record["resv_name"]),
        priority=_number(record["priority"]) or 0,
        nice=_signed(_number(record["nice"]) or 0),
        submit_host=_word(record.get("allocating_node")),
        expedited="EXPEDITED_REQUEUE" in _words(record.get("flags")),
        allocated=_word(record.get("tres_alloc_str")) if has_nodes(state, nodes) else "",
        **_of_quotas(record, has_nodes=has_nodes(state, nodes)),
    )


def _array(record: Json) -> tuple[JobId | None, int | None]:
    """The array and the task. Once all its waiting tasks were cancelled one by one, the record that stood for them
    stands for none: it is a job of its own, as squeue shows it."""
    array = _number(record["array_job_id"])
    task = _number(record["array_task_id"]) if array else None
    if not array or (task is None and not _text(record.get("array_task_string"))):
        return None, None
    return JobId(array), task


def has_nodes(state: JobState, nodes: Collection[NodeName]) -> bool:
    """Whether what Slurm tells as allocated counts: slurmctld keeps it for a while in the record of a requeued job that
    waits, and text tells there what a job that never ran had asked for."""
    return state is not JobState.PENDING and bool(nodes)


class _OfQuotas(TypedDict):
    requested: str
    preempted: float | None
    comment: str
    most_nodes: int
    node_sizes: str
    is_total: bool
    required: frozenset[NodeName]
    features: str
    exclusive: bool
    waiting_tasks: int
    most_tasks: int


def _of_quotas(record: Json, *, has_nodes: bool) -> _OfQuotas:
    """The part of a job's record that quotas are about."""
    return {
        "requested": _word(record.get("tres_req_str")),
        "preempted": _time(record.get("preempt_time")) if has_nodes else None,
        "comment": _text(record.get("comment")),
        "most_nodes": most_nodes(_number(record.get("max_nodes")) or 0, _number(record["node_count"]) or 0),
        "node_sizes": ",".join(_list(record.get("job_size_str"))),
        "is_total": is_total(
            _text(record.get("tres_per_job")),
            is_by_node=bool(_text(record.get("tres_per_node")) or _number(record.get("tasks_per_node"))),
            tasks=_number(record.get("tasks")) or 0,
            nodes=_number(record["node_count"]) or 0,
        ),
        "required": expand(_text(record.get("required_nodes"))),
        "features": _word(record.get("features")),
        "exclusive": "NONE" in _words(record.get("shared")),
        "waiting_tasks": count_tasks(_text(record.get("array_task_string"))),
        "most_tasks": tasks_at_once(_text(record.get("array_task_string"))),
    }


def is_total(tres_per_job: str, *, is_by_node: bool, tasks: int, nodes: int) -> bool:
    """Accelerators of the job as a whole; or more tasks than nodes, where nothing is said of each node."""
    return bool(tres_per_job) or (not is_by_node and tasks > nodes)


def most_nodes(most: int, count: int) -> int:
    """Slurm says it of many jobs that take no more nodes than they ask for."""
    return most if most > count else 0


def count_tasks(text: str) -> int:
    """How many tasks `0-9%2` or `1,5-9:2` are; at least 1. Slurm shortens a long list (`1-3,...`)."""
    ranges = [_RANGE.fullmatch(each) for each in text.partition("%")[0].split(",")]
    return max(1, sum((int(r[2] or r[1]) - int(r[1])) // int(r[3] or 1) + 1 for r in ranges if r))


def tasks_at_once(text: str) -> int:
    """The 2 of `0-9%2`; 0 where there is no such bound."""
    most = text.partition("%")[2]
    return int(most) if most.isascii() and most.isdigit() else 0


def hold_reason(word: str, description: str) -> str:
    """Slurm calls its own holds `JobHeldUser` too; only the description tells (`launch failed requeued held`)."""
    return description if word == "JobHeldUser" and description else word


@lru_cache(maxsize=1024)
def job_state(*words: str) -> tuple[JobState, frozenset[str]]:
    """The base state and the flags, the same objects for the same words. A word that is neither stays a flag, and the
    base is UNKNOWN."""
    base = next((_JOB_STATES[word] for word in words if word in _JOB_STATES), None)
    if base is None:
        base = next((_HIDDEN_BASE[word] for word in words if word in _HIDDEN_BASE), JobState.UNKNOWN)
    return base, frozenset(words) - {base.value}


def _exit_status(value: Any) -> int:
    """A raw wait status, as v0.0.38 has it (but for the core-dump bit), made from return code and signal for others."""
    if not isinstance(value, Mapping):
        return (_number(value) or 0) & ~CORE_DUMPED
    signal = value.get("signal") or {}
    number = _number(signal.get("id", signal.get("signal_id"))) or 0
    return ((_number(value.get("return_code")) or 0) << 8) | (number & 0x7F)


def _words(value: Any) -> list[str]:
    """State words in upper case, from one word or a list of them."""
    words = [value] if isinstance(value, str) else list(value or ())
    return [str(word).upper() for word in words if word]


def _list(value: Any) -> list[str]:
    """v0.0.38 prints features as `a,b`, later ones as a list."""
    return [word for word in (value.split(",") if isinstance(value, str) else value or ()) if word]


def _number(value: Any) -> int | None:
    """A number of any version; None where Slurm has none. Raises ValueError for what is not a whole one."""
    if isinstance(value, Mapping):
        value = value["number"] if value["set"] else None
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"{value} is not a whole number")
    return None if value is None else int(value)


def _signed(number: int) -> int:
    """22.05 prints a nice value below 0 as the 32 bits that it has."""
    return (number + 2**31) % 2**32 - 2**31


def _whole(value: Any) -> int:
    """A number that must be there."""
    number = _number(value)
    if number is None:
        raise ValueError("a number is missing")
    return number


def _time(value: Any) -> float | None:
    """Unix seconds; Slurm's 0 is None."""
    number = _number(value)
    return float(number) if number else None


def _minutes(value: Any) -> float | None:
    """Slurm's minutes as seconds; None where there is no limit."""
    number = _number(value)
    return None if number is None else number * 60.0


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a name is missing")
    return _text(value)


def _text(value: Any) -> str:
    """A text that every later writer can encode: halves of characters are replaced."""
    text = "" if value is None else str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _word(value: Any) -> str:
    """A text that many records have: each is in memory once."""
    return intern(_text(value))


def node_of(line: str) -> Node:
    """Read a node's record of steward-slurm. Raises Garbled."""
    of = NODE.read(line)
    name = record_form.text(of["name"])
    base, flags = _node_words(of["state"])
    return Node(
        name=NodeName(name),
        base=base,
        flags=flags,
        reason=_reason_of(of) if of["reason"] and out_of_service(base, flags) else None,
        partitions=partitions_of(record_form.text(of["partitions"])),
        features=words_in(record_form.text(of["features"])),
        active_features=words_in(record_form.text(of["active_features"] or of["features"])),
        address=record_form.text(of["address"]),
        port=int(of["port"] or 0),
        cpus=int(of["cpus"] or 0),
        memory_mb=int(of["memory_mb"]),
        gres=intern(record_form.text(of["gres"])),
        boot_time=_seconds(of["boot_time"]),
        slurmd_started=_seconds(of["slurmd_started"]),
        responding="NOT_RESPONDING" not in flags,
        extra=extra(name, record_form.text(of["hostname"])),
    )


def _reason_of(of: Mapping[str, str]) -> Reason:
    text, user = record_form.text(of["reason"]), record_form.text(of["reason_user"])
    return Reason(text=text, user=user, at=float(of["reason_at"] or 0))


def job_of(line: str) -> Job:
    """Read a job's record of steward-slurm. Raises Garbled, or Retryable for a list of nodes that is none."""
    of = JOB.read(line)
    state, flags = job_state(*of["state"].split("+"))
    nodes, count = expand(record_form.text(of["nodes"])), int(of["node_count"] or 0)
    tasks, has = record_form.text(of["array_tasks"]), has_nodes(state, nodes)
    array, task = _array_of(of)
    reason, described = record_form.text(of["reason"]), record_form.text(of["described"])
    batch_host = record_form.text(of["batch_host"])
    by_node = bool(of["tres_per_node"]) or of["tasks_per_node"] not in ("", "0")
    return Job(
        id=JobId(int(of["id"])),
        name=record_form.text(of["name"]),
        state=state,
        user_id=int(of["user_id"]),
        flags=flags,
        reason=hold_reason(reason, described),
        nodes=nodes,
        batch_host=NodeName(batch_host) if batch_host else None,
        is_batch=of["is_batch"] == "1",
        restarts=int(of["restarts"]),
        requeue=of["requeue"] == "1",
        exit_status=int(of["exit_status"] or 0) & ~CORE_DUMPED,
        excluded=expand_users(record_form.text(of["excluded"])),
        array_job_id=array,
        array_task=task,
        het_job_id=JobId(int(of["het_job_id"])) if of["het_job_id"] not in ("", "0") else None,
        partition=_shared(of["partition"]),
        account=_shared(of["account"]),
        node_count=count,
        submitted=_seconds(of["submitted"]),
        eligible=_seconds(of["eligible"]),
        started=_seconds(of["started"]),
        ended=_seconds(of["ended"]) if state in OVER else None,
        preempted=_seconds(of["preempted"]) if has else None,
        admin_comment=record_form.text(of["admin_comment"]),
        comment=record_form.text(of["comment"]),
        qos=_shared(of["qos"]),
        time_limit_s=int(of["limit_minutes"]) * 60.0 if of["limit_minutes"] else None,
        reservation=_shared(of["reservation"]),
        priority=int(of["priority"] or 0),
        nice=int(of["nice"]),
        submit_host=_shared(of["submit_host"]),
        expedited=of["expedited"] == "1",
        requested=_shared(of["requested"]),
        allocated=_shared(of["allocated"]) if has else "",
        node_sizes=record_form.text(of["node_sizes"]),
        is_total=is_total(of["tres_per_job"], is_by_node=by_node, tasks=int(of["tasks"] or 0), nodes=count),
        most_nodes=most_nodes(int(of["most_nodes"] or 0), count),
        required=expand_users(record_form.text(of["required"])),
        features=_shared(of["features"]),
        exclusive=of["exclusive"] == "1",
        waiting_tasks=count_tasks(tasks),
        most_tasks=tasks_at_once(tasks),
    )


def _array_of(of: Mapping[str, str]) -> tuple[JobId | None, int | None]:
    """As `_array`."""
    if of["array_job_id"] in ("", "0") or not (of["array_task"] or of["array_tasks"]):
        return None, None
    return JobId(int(of["array_job_id"])), int(of["array_task"]) if of["array_task"] else None


def _shared(escaped: str) -> str:
    """A text that many records have: each is in memory once."""
    return intern(record_form.text(escaped))


def _seconds(text: str) -> float | None:
    return float(text) if text else None


@lru_cache(maxsize=1024)
def _node_words(text: str) -> tuple[NodeBase, frozenset[str]]:
    return node_state(text.split("+"))


@lru_cache(maxsize=1024)
def words_in(text: str) -> frozenset[str]:
    """The words of a list. They are kept, for most of thousands of nodes have the same ones."""
    return frozenset(word for word in text.split(",") if word and word != "(null)")


@lru_cache(maxsize=1024)
def partitions_of(text: str) -> frozenset[str]:
    """A node's partitions but for those of deep checks."""
    return frozenset(each for each in words_in(text) if not each.startswith(DEEP_PREFIX))


_BETWEEN = re.compile(r",(?![^()]*\))")
_USED = re.compile(r"([A-Za-z0-9_.:-]+?)(?::\(null\))?:([1-9][0-9]*)(?:\([^()]*\))?")


def in_use(text: str) -> str:
    """The GRES of a node that are in use, as `gpu:a100:4`; empty: none."""
    kinds = [match for word in _BETWEEN.split(text) if (match := _USED.fullmatch(word.strip()))]
    return ",".join(f"{kind[1]}:{kind[2]}" for kind in kinds)


def gres_used(lines: Iterable[str]) -> dict[NodeName, str]:
    """Of steward-slurm's records; nodes of which nothing is used are left out. Raises Garbled."""
    told = (GRES.read(line) for line in lines)
    return {
        NodeName(record_form.text(of["name"])): used for of in told if (used := in_use(record_form.text(of["used"])))
    }


# Slurm's JSON, one record after the other: of a hundred megabytes, which ten thousand jobs have, json.loads makes
# several times as much, and keeps every other thread from running meanwhile: agents would seem silent.

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def read_records(text: str, key: str, each: Callable[[Any], T]) -> tuple[list[T], dict[str, Any]]:
    """Read the one object in `text`: the list `key`, each of its elements as `each` makes it, and the rest of the
    object.

    Raises ValueError or RecursionError for what is no such text, KeyError where it has no `key`, and what `each` does.
    """
    found: list[T] | None = None
    rest: dict[str, Any] = {}
    mark, at = _mark(text, 0, "{")
    while mark != "}":
        name, at = _value(text, at)
        if not isinstance(name, str):
            raise ValueError(f"no name before {at}")
        _, at = _mark(text, at, ":")
        if name == key:
            found, at = _elements(text, at, each)
        else:
            rest[name], at = _value(text, at)
        mark, at = _mark(text, at, ",}")
    if _skip(text, at) != len(text):
        raise ValueError(f"more than one value: extra text at {at}")
    if found is None:
        raise KeyError(key)
    return found, rest


def _elements(text: str, at: int, each: Callable[[Any], T]) -> tuple[list[T], int]:
    """The elements of the list at `at`, and where the list ends."""
    mark, at = _mark(text, at, "[")
    if text.startswith("]", _skip(text, at)):
        return [], _skip(text, at) + 1
    found = []
    while mark != "]":
        value, at = _value(text, at)
        found.append(each(value))
        mark, at = _mark(text, at, ",]")
    return found, at


def _value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, _skip(text, at))


def _mark(text: str, at: int, known: str) -> tuple[str, int]:
    """The next character, which must be one of `known`, and what is behind it."""
    at = _skip(text, at)
    mark = text[at : at + 1]
    if not mark or mark not in known:
        raise ValueError(f"{mark!r} at {at}, not one of {known!r}")
    return mark, at + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
