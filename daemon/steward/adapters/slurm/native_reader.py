"""The process that reads Slurm through pyslurm, and what it sends back. Only this process ever loads pyslurm.

pyslurm (seen with 24.11.0) holds Python's global lock for a whole call: a slurmctld that hangs would stop every thread
of the head for MessageTimeout, 10 s, agents' heartbeats included. And a crash inside libslurm would be ours. What it
does not tell, or not well, is mended here: task 0 of an array has no index, a flag hides a job's base state (as in
22.05), a name that is no UTF-8 cannot be read.
"""

import contextlib
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from steward.adapters.slurm.records import OVER, count_tasks, job_state, node_state, out_of_service
from steward.adapters.slurm.words import expand, expand_users
from steward.model.deep import DEEP_PREFIX
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node, Reason

_REASON_OF = {
    "launch failure limit exceeded requeued held": "JobHoldMaxRequeue",
    "Nodes required for job are DOWN, DRAINED": "Resources",
    "ReqNodeNotAvail": "ReqNodeNotAvail",
    "Burst buffer": "BurstBufferOperation",
    "burst buffer": "BurstBufferOperation",
}
"""pyslurm tells the description where there is one. What it begins with -> the word that the commands tell. Other
descriptions are told as they are: those of Slurm's own holds are what the commands' answers are read as, too."""


def serve(pipe: Connection, conf: str) -> None:
    """Answer `nodes` and `jobs` with a list of model values, or an error text, until the pipe is closed."""
    if conf:
        os.environ["SLURM_CONF"] = conf
    readers: Mapping[str, Callable[[], list[Any]]] = {}
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            wanted = pipe.recv()
            try:
                readers = readers or _readers()
                pipe.send(readers[wanted]())
            except Exception as error:  # whatever pyslurm raises is the head's to judge, as text
                pipe.send(f"pyslurm: {error!r}")


def _readers() -> Mapping[str, Callable[[], list[Any]]]:
    slurm = importlib.import_module("pyslurm")
    return {
        "nodes": lambda: [node(found) for found in slurm.Nodes.load().values()],
        "jobs": lambda: readable(slurm.Jobs.load().values()),
    }


def readable(many: Iterable[Any]) -> list[Job]:
    """One that cannot be read costs nobody else: what stands in it is its user's in part. Raises the error where none
    can be read."""
    found, errors = [], []
    for one in many:
        try:
            found.append(job(one))
        except Exception as error:  # whatever pyslurm raises
            errors.append(error)
    if errors and not found:
        raise errors[0]
    return found


def node(found: Any) -> Node:
    """`found` is a pyslurm.Node. It does not tell its port: 0."""
    base, flags = node_state(found.state.split("+"))
    reason = Reason(text=found.reason or "", user=found.reason_user or "", at=float(found.reason_time or 0))
    return Node(
        name=NodeName(found.name),
        base=base,
        flags=flags,
        reason=reason if reason.text and out_of_service(base, flags) else None,
        partitions=frozenset(each for each in found.partitions or () if not each.startswith(DEEP_PREFIX)),
        features=frozenset(found.available_features or ()),
        active_features=frozenset(found.active_features or ()),
        address=found.address or "",
        port=0,
        cpus=found.total_cpus or 0,
        memory_mb=found.real_memory or 0,
        gres=",".join(f"{name}:{count}" for name, count in (found.configured_gres or {}).items()),
        boot_time=_time(found.boot_time),
        slurmd_started=_time(found.slurmd_start_time),
        responding="NOT_RESPONDING" not in flags,
        extra={"version": found.slurm_version} if found.slurm_version else {},
    )


def job(found: Any) -> Job:
    """`found` is a pyslurm.Job."""
    state, flags = job_state(found.state)
    array_job = JobId(found.array_id) if found.array_id else None
    is_rest_of_array = bool(found.array_tasks_waiting)
    return Job(
        id=JobId(found.id),
        name=_text(found, "name"),
        state=state,
        user_id=found.user_id,
        flags=flags,
        reason=_reason(_text(found, "state_reason")) or "None",
        nodes=expand(found.allocated_nodes or ""),
        batch_host=NodeName(found.batch_host) if found.batch_host else None,
        is_batch=bool(found.is_batch_job),
        restarts=found.requeue_count or 0,
        requeue=bool(found.is_requeueable),
        exit_status=((found.exit_code or 0) << 8) | ((found.exit_code_signal or 0) & 0x7F),
        excluded=expand_users(found.excluded_nodes or ""),
        array_job_id=array_job,
        array_task=(found.array_task_id or 0) if array_job and not is_rest_of_array else None,
        het_job_id=JobId(found.heterogeneous_id) if found.heterogeneous_id else None,
        partition=found.partition or "",
        account=found.account or "",
        node_count=found.num_nodes or 0,
        submitted=_time(found.submit_time),
        eligible=_time(found.eligible_time),
        started=_time(found.start_time),
        ended=_time(found.end_time) if state in OVER else None,
        admin_comment=_text(found, "admin_comment"),
        qos=found.qos or "",
        time_limit_s=found.time_limit * 60.0 if found.time_limit else None,
        reservation=found.reservation or "",
        priority=found.priority or 0,
        nice=found.nice or 0,
        submit_host=_text(found, "submit_host"),
        comment=_text(found, "comment"),
        waiting_tasks=count_tasks(found.array_tasks_waiting or ""),
    )


def _reason(told: str) -> str:
    return next((word for begin, word in _REASON_OF.items() if told.startswith(begin)), told)


def _text(found: Any, name: str) -> str:
    try:
        return getattr(found, name) or ""
    except UnicodeDecodeError:
        return "\N{REPLACEMENT CHARACTER}"


def _time(value: int | None) -> float | None:
    return float(value) if value else None
