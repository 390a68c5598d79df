"""The agent's looks at jobs, the end of their output, Slurm and other nodes: bounded, off the loop's thread."""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from steward.adapters.node import as_user, job_look, job_processes
from steward.adapters.node.job_look import ProgressLook, Stamp
from steward.adapters.node.job_processes import Used
from steward.adapters.node.jobs_here import Base, JobsHere
from steward.adapters.offload import PerUser, Threads
from steward.adapters.wire.order_messages import LookOrder, looked_frame
from steward.agent.job_folder import PROGRESS, JobFolders
from steward.agent.link import Outbox
from steward.agent.opted import OptedBook, Output
from steward.agent.tasks import OneEach
from steward.checks.job_log import signs_in
from steward.model.ask import OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.job_report import LogSign
from steward.model.probe import QueryGpus, Raw
from steward.model.witness import Address, WitnessSeen
from steward.ports import PortError

log = logging.getLogger(__name__)

# On the head's order: look whether another node's slurmd answers, and tell. The head alone may be cut off from it.

AT_ONCE = 16
"""More are not looked at: no word is better than a late one."""
_PEER_S = 10.0


class PeerLook:
    def __init__(self, look: Callable[[Address], WitnessSeen | None], *, head: Outbox, threads: Threads) -> None:
        """`look` blocks for some seconds."""
        self._look, self._head, self._threads = look, head, threads
        self._tasks = OneEach[NodeName]()

    def obey(self, order: LookOrder) -> None:
        """Begin, unless this node is looked at just now; never blocks."""
        if order.node not in self._tasks and len(self._tasks) < AT_ONCE:
            self._tasks.begin(order.node, self._tell(order))

    async def rest(self) -> None:
        """Until nothing is being looked at."""
        await self._tasks.rest()

    async def _tell(self, order: LookOrder) -> None:
        address = Address(host=order.address, port=order.port)
        try:
            seen = await self._threads.call(
                lambda: self._look(address), name=f"look at {order.node}", timeout_s=_PEER_S
            )
        except (PortError, OSError):
            return  # nothing was found out
        if seen is not None:
            self._head.post(looked_frame(order.node, seen.result))


# The agent's own, rare questions to Slurm, off the loop's thread.

_SLURM_S = 6.0


class SlurmLook:
    def __init__(self, jobs: JobsHere, threads: Threads) -> None:
        self._jobs = jobs
        self._threads = threads

    async def is_over(self, job: JobId, restart: int) -> bool:
        """Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.is_over(job, restart), name="job look", timeout_s=_SLURM_S)

    async def on(self, node: NodeName) -> Mapping[JobId, int]:
        """The users of the jobs there. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.on(node), name="jobs look", timeout_s=_SLURM_S)

    async def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        """The jobs that run there. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.bases(node), name="bases look", timeout_s=_SLURM_S)


_IDLE = 1
"""NVML's bit among the reasons for a GPU's clock: it has nothing to do."""


class JobEyes:
    def __init__(self, folders: JobFolders, look: Callable[[QueryGpus], Raw]) -> None:
        self._folders = folders
        self._look = look

    def told(self, opted: OptedIn, before: Stamp | None) -> ProgressLook:
        return job_look.look(self._folders.folder(opted.job, opted.uid), PROGRESS, opted.uid, before)

    def has_room(self) -> bool:
        return job_look.has_room(self._folders.root)

    def newest(self, path: str, uid: int) -> float | None:
        return as_user.newest(path, uid)

    def used(self, users: Mapping[JobId, int]) -> Used:
        return job_processes.used(users)

    def gpus_busy(self) -> bool | None:
        raw = self._look(QueryGpus())
        reasons = [gpu.clock_reasons for gpu in raw.gpus or ()]
        if raw.error or raw.hung or None in reasons:
            return None
        return any(not reason & _IDLE for reason in reasons if reason is not None)


# Signs at the end of a job's output: read with its user's rights, in children that are killed when slow.


MAX_BYTES = 64 << 10
_READ_S = 0.5


class Files(Protocol):
    """The files of users. Raises PortError."""

    def tail(self, path: str, uid: int, *, max_bytes: int, timeout_s: float, start: int) -> str: ...


class JobLogs:
    """`__call__` raises Retryable where the output cannot be read in time; of a job without a path nothing is known.
    Each user has `threads` of his own: a file that hangs holds up no other user's."""

    def __init__(self, opted: OptedBook, threads: Callable[[], Threads], files: Files = as_user) -> None:
        self._opted, self._files = opted, files
        self._threads = PerUser(threads)

    async def __call__(self, job: JobId, uid: int) -> tuple[LogSign, ...]:
        out = self._opted.out_of(job, uid)
        if not out.path.startswith("/"):
            return ()
        found = await self._threads.of(uid).call(
            lambda: signs_in(self._read(out, uid)), name=f"output of {job}", timeout_s=_READ_S
        )
        log.info("output read job=%d signs=%s", job, ",".join(sign.sign for sign in found) or "none")
        return found

    def _read(self, out: Output, uid: int) -> str:
        return self._files.tail(out.path, uid, max_bytes=MAX_BYTES, timeout_s=_READ_S, start=out.start)
