"""Nodes and jobs as model values: steward-slurm's records, and words that the commands print, too."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from sys import intern
from typing import TypedDict

from steward.adapters.slurm import record_form
from steward.adapters.slurm.record_form import GRES, JOB, NODE
from steward.adapters.slurm.words import expand, expand_users
from steward.model.deep import DEEP_PREFIX
from steward.model.gres import parse_gres
from steward.model.ids import JobId, NodeName
from steward.model.job import ENDED, Job, JobState
from steward.model.node import Node, NodeBase, Reason

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
"""The base state of each flag that 22.05 prints in its place."""
CORE_DUMPED = 0x80
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?(?::([1-9][0-9]{0,8}))?")
_NODES_ASKED = re.compile(r"(?:^|,)node=([1-9][0-9]{0,8})(?:,|$)")
_UNAVAILABLE = re.compile(r"ReqNodeNotAvail,[ _]?UnavailableNodes:([^ ]+)")
_TAKEN = re.compile(r"ReqNodeNotAvail,[ _]?May[ _]be[ _]reserved")
"""Slurm's words about required nodes (`-w`) of which none is out: jobs have them, or Slurm keeps them for one."""
_NO_EXTRA: dict[str, str] = {}


def node_of(line: str) -> Node:
    """Return the node of a record of steward-slurm. Raises Garbled."""
    of = NODE.read(line)
    name = record_form.unescaped(of["name"])
    base, flags = _node_words(of["state"])
    return Node(
        name=NodeName(name),
        base=base,
        flags=flags,
        reason=_reason_of(of) if of["reason"] and out_of_service(base, flags) else None,
        partitions=partitions_of(record_form.unescaped(of["partitions"])),
        features=words_in(record_form.unescaped(of["features"])),
        active_features=words_in(record_form.unescaped(of["active_features"] or of["features"])),
        address=record_form.unescaped(of["address"]),
        port=int(of["port"] or 0),
        cpus=int(of["cpus"] or 0),
        threads=max(int(of["threads"] or 1), 1),
        memory_mb=int(of["memory_mb"]),
        gres=intern(record_form.unescaped(of["gres"])),
        boot_time=_seconds(of["boot_time"]),
        slurmd_started=_seconds(of["slurmd_started"]),
        responding="NOT_RESPONDING" not in flags,
        extra=extra(name, record_form.unescaped(of["hostname"])),
    )


def _reason_of(of: Mapping[str, str]) -> Reason:
    text, user = record_form.unescaped(of["reason"]), record_form.unescaped(of["reason_user"])
    return Reason(text=text, user=user, at=float(of["reason_at"] or 0))


def job_of(line: str) -> Job:
    """Return the job of a record of steward-slurm. Raises Garbled, or Retryable for a bad list of nodes."""
    of = JOB.read(line)
    state, flags = job_state(*of["state"].split("+"))
    nodes = expand(record_form.unescaped(of["nodes"]))
    array, task = _array_of(of)
    return Job(
        id=JobId(int(of["id"])),
        name=record_form.unescaped(of["name"]),
        state=state,
        user_id=int(of["user_id"]),
        flags=flags,
        reason=job_reason(record_form.unescaped(of["reason"]), record_form.unescaped(of["described"])),
        nodes=nodes,
        batch_host=NodeName(record_form.unescaped(of["batch_host"])) if of["batch_host"] else None,
        is_batch=of["is_batch"] == "1",
        restarts=int(of["restarts"]),
        requeue=of["requeue"] == "1",
        exit_status=int(of["exit_status"] or 0) & ~CORE_DUMPED,
        excluded=expand_users(record_form.unescaped(of["excluded"])),
        array_job_id=array,
        array_task=task,
        het_job_id=JobId(int(of["het_job_id"])) if of["het_job_id"] not in ("", "0") else None,
        partition=_interned(of["partition"]),
        account=_interned(of["account"]),
        submitted=_seconds(of["submitted"]),
        eligible=_seconds(of["eligible"]),
        started=_seconds(of["started"]),
        ended=_seconds(of["ended"]) if state in ENDED else None,
        admin_comment=record_form.unescaped(of["admin_comment"]),
        qos=_interned(of["qos"]),
        time_limit_s=int(of["limit_minutes"]) * 60.0 if of["limit_minutes"] else None,
        reservation=_interned(of["reservation"]),
        priority=int(of["priority"] or 0),
        nice=int(of["nice"]),
        submit_host=_interned(of["submit_host"]),
        expedited=of["expedited"] == "1",
        **_of_quotas(of, has_nodes(state, nodes)),
    )


class _OfQuotas(TypedDict):
    """More fields of a Job, most of them for quotas."""

    requested: str
    allocated: str
    preempted: float | None
    comment: str
    node_count: int
    most_nodes: int
    node_sizes: str
    is_total: bool
    required: frozenset[NodeName]
    features: str
    exclusive: bool
    memory_per_cpu: bool
    unavailable: frozenset[NodeName]
    planned: frozenset[NodeName]
    array_tasks: str
    waiting_tasks: int
    most_tasks: int


def _of_quotas(of: Mapping[str, str], has: bool) -> _OfQuotas:
    """Return the fields for quotas of a job's record. `has`: the job has nodes, so that its allocation counts."""
    count, most, total = _extent(of)
    return {
        "requested": _interned(of["requested"]),
        "allocated": _interned(of["allocated"]) if has else "",
        "preempted": _seconds(of["preempted"]) if has else None,
        "comment": record_form.unescaped(of["comment"]),
        "node_count": count,
        "most_nodes": most,
        "node_sizes": record_form.unescaped(of["node_sizes"]),
        "is_total": total,
        "required": expand_users(record_form.unescaped(of["required"])),
        "features": _interned(of["features"]),
        "exclusive": of["exclusive"] == "1",
        "memory_per_cpu": of["memory_per_cpu"] == "1",
        "unavailable": unavailable(record_form.unescaped(of["described"])),
        "planned": frozenset() if has else expand(record_form.unescaped(of["planned"])),
        "array_tasks": record_form.unescaped(of["array_tasks"]),
        "waiting_tasks": count_tasks(of["array_tasks"]),
        "most_tasks": tasks_at_once(of["array_tasks"]),
    }


def _extent(of: Mapping[str, str]) -> tuple[int, int, bool]:
    """Return how many nodes the job takes at least and at most, and whether its resources are a total for all."""
    shown, most, tasks = (int(of[name] or 0) for name in ("node_count", "most_nodes", "tasks"))
    per_node = int(of["tasks_per_node"] or 0)
    asked = shown
    if of["state"].startswith("PENDING") and of["restarts"] not in ("", "0"):
        asked = asked_again(record_form.unescaped(of["requested"]), shown, tasks, per_node)
    by_node = bool(of["tres_per_node"]) or per_node > 0
    total = is_total(of["tres_per_job"], is_by_node=by_node, tasks=tasks, nodes=asked)
    return asked, most_nodes(most, asked, shown, is_total=total), total


def _array_of(of: Mapping[str, str]) -> tuple[JobId | None, int | None]:
    """Return the array and the task."""
    # an array's record of which all waiting tasks were cancelled one by one stands for no task: it counts as a job of
    # its own, as in squeue
    if of["array_job_id"] in ("", "0") or not (of["array_task"] or of["array_tasks"]):
        return None, None
    return JobId(int(of["array_job_id"])), int(of["array_task"]) if of["array_task"] else None


def _interned(escaped: str) -> str:
    """Return a text that many records have, kept once in memory."""
    return intern(record_form.unescaped(escaped))


def _seconds(text: str) -> float | None:
    return float(text) if text else None


@lru_cache(maxsize=1024)
def _node_words(text: str) -> tuple[NodeBase, frozenset[str]]:
    return node_state(text.split("+"))


@lru_cache(maxsize=1024)
def words_in(text: str) -> frozenset[str]:
    """Return the words of a list; cached, because most of thousands of nodes have the same ones."""
    return frozenset(word for word in text.split(",") if word and word != "(null)")


@lru_cache(maxsize=1024)
def partitions_of(text: str) -> frozenset[str]:
    """Return a node's partitions without those of deep checks."""
    return frozenset(each for each in words_in(text) if not each.startswith(DEEP_PREFIX))


def in_use(text: str) -> str:
    """Return the GRES of a node that are in use, as `gpu:a100:4`; empty if there are none."""
    return ",".join(str(each) for each in parse_gres(text) if each.amount)


def gres_used(lines: Iterable[str]) -> dict[NodeName, str]:
    """Return the used GRES of each node from steward-slurm's records, without unused ones. Raises Garbled."""
    told = (GRES.read(line) for line in lines)
    return {
        NodeName(record_form.unescaped(of["name"])): used
        for of in told
        if (used := in_use(record_form.unescaped(of["used"])))
    }


def extra(name: str, hostname: str) -> dict[str, str]:
    """Return the host name of the node's machine if it differs from the node's name."""
    return {"hostname": hostname} if hostname and hostname != name else _NO_EXTRA


def node_state(words: Sequence[str]) -> tuple[NodeBase, frozenset[str]]:
    """Return the base state, which comes first, and the flags; an unknown base is kept as a flag of UNKNOWN."""
    base = _NODE_BASES.get(words[0], NodeBase.UNKNOWN)
    is_known = base is not NodeBase.UNKNOWN or words[0] == NodeBase.UNKNOWN.value
    return base, frozenset(words[1:] if is_known else words)


def out_of_service(base: NodeBase, flags: frozenset[str]) -> bool:
    """Return whether the node is out of service, so that its reason counts."""
    # Slurm 24.11 keeps the reason of a resumed node.
    return base in (NodeBase.DOWN, NodeBase.ERROR, NodeBase.UNKNOWN) or bool(
        flags & {"DRAIN", "FAIL", "INVALID", "INVALID_REG", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
    )


def has_nodes(state: JobState, nodes: Collection[NodeName]) -> bool:
    """Return whether the job has or had nodes in this run, so that the fields about its allocation count."""
    # slurmctld keeps these fields for a while in the record of a requeued job that waits, and squeue shows in them what
    # a job that never ran asked for
    return state is not JobState.PENDING and bool(nodes)


def is_total(tres_per_job: str, *, is_by_node: bool, tasks: int, nodes: int) -> bool:
    """Return whether the request is for the whole job: accelerators by job, or more tasks than nodes."""
    return bool(tres_per_job) or (not is_by_node and tasks > nodes)


def asked_again(requested: str, shown: int, tasks: int, per_node: int) -> int:
    """Return how many nodes a job that waits for another run asks for at least."""
    # Slurm shows the nodes of its last run, also where it had more than it asked for (`-N 1-4`), was given up some or
    # lost some under `--no-kill`; its TRES are what it asks for (22.05.8)
    found = _NODES_ASKED.search(requested)
    if not found:
        return shown
    asked = int(found[1])
    if per_node:
        return max(asked, -(-tasks // per_node))
    return asked if tasks <= asked else max(asked, shown)  # tasks alone may need more nodes than the TRES say


def most_nodes(most: int, count: int, shown: int, *, is_total: bool) -> int:
    """Return the most nodes that the job takes; 0 if it takes only its own count."""
    # Slurm gives a maximum for many jobs that take no more nodes than they ask for; for a request of the whole job it
    # is the number of nodes that may share the request (`-N1 --gpus=2`). It gives none for a job that waits for another
    # run: that takes at least as many as its last one had.
    most = max(most, shown) if shown > count else most
    return most if most > count or is_total else 0


def count_tasks(text: str) -> int:
    """Return how many tasks `0-9%2` or `1,5-9:2` are; at least 1. Slurm shortens a long list (`1-3,...`)."""
    ranges = [_RANGE.fullmatch(each) for each in text.partition("%")[0].split(",")]
    return max(1, sum((int(r[2] or r[1]) - int(r[1])) // int(r[3] or 1) + 1 for r in ranges if r))


def tasks_at_once(text: str) -> int:
    """Return the 2 of `0-9%2`; 0 if there is no such limit."""
    most = text.partition("%")[2]
    return int(most) if most.isascii() and most.isdigit() else 0


def job_reason(word: str, description: str) -> str:
    """Return why a job waits: Slurm's word, or what its description says more exactly."""
    # Slurm calls its own holds `JobHeldUser` too; only the description tells them apart (`launch failed requeued held`)
    if word == "JobHeldUser" and description:
        return description
    return "Resources" if _TAKEN.match(description) else word


def unavailable(description: str) -> frozenset[NodeName]:
    """Return the nodes of `ReqNodeNotAvail, UnavailableNodes:n[1-2]`."""
    found = _UNAVAILABLE.match(description)
    return expand_users(found[1]) if found else frozenset()


@lru_cache(maxsize=1024)
def job_state(*words: str) -> tuple[JobState, frozenset[str]]:
    """Return the base state and the flags, the same objects for the same words.

    An unknown word is kept as a flag; without a known base, the base is UNKNOWN.
    """
    base = next((_JOB_STATES[word] for word in words if word in _JOB_STATES), None)
    if base is None:
        base = next((_HIDDEN_BASE[word] for word in words if word in _HIDDEN_BASE), JobState.UNKNOWN)
    return base, frozenset(words) - {base.value}
