"""The agent's looks at jobs, the end of their output, Slurm and other nodes: bounded, outside the loop's thread."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Protocol

from steward.adapters import proc, sock_diag
from steward.adapters.node import as_user, job_look, job_processes, process_sockets
from steward.adapters.node.as_user import FileEnd, Matched
from steward.adapters.node.job_look import ProgressLook, Stamp
from steward.adapters.node.jobs_here import Base, JobsHere
from steward.adapters.node.step_walk import RankName, StepLook, StepWalk, output_of, rank_names, waits_in
from steward.adapters.offload import PerUser, Threads
from steward.adapters.proc import ProcessKey
from steward.adapters.wire.order_messages import LookOrder, looked_frame
from steward.adapters.wire.shimline import AskLine, EndedLine
from steward.agent.job_folder import PROGRESS, JobFolders
from steward.agent.link import Outbox
from steward.agent.opted import OptedBook, Output
from steward.agent.output_reach import OutputReach
from steward.agent.tasks import OneEach
from steward.checks.job_log import signs_in
from steward.model.ask import Answer, OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.job_report import LogSign
from steward.model.probe import Gpu, QueryGpus, Raw
from steward.model.witness import Address, WitnessSeen
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

# On the head's order: probe whether another node's slurmd answers. The head alone may be cut off from that node.

AT_ONCE = 16
"""The most probes at once; further orders are ignored, because no answer is better than a late one."""
_PEER_S = 10.0


class PeerLook:
    """The probes of other nodes' slurmds on the head's order."""

    def __init__(self, look: Callable[[Address], WitnessSeen | None], *, head: Outbox, threads: Threads) -> None:
        """Take `look`, which blocks for some seconds."""
        self._look, self._head, self._threads = look, head, threads
        self._tasks = OneEach[NodeName]()

    def obey(self, order: LookOrder) -> None:
        """Start probing the node, unless a probe of it is under way; never block."""
        if order.node not in self._tasks and len(self._tasks) < AT_ONCE:
            self._tasks.begin(order.node, self._probe(order))

    async def rest(self) -> None:
        """Wait until no probe is under way."""
        await self._tasks.rest()

    async def _probe(self, order: LookOrder) -> None:
        address = Address(host=order.address, port=order.port)
        try:
            seen = await self._threads.call(
                lambda: self._look(address), name=f"look at {order.node}", timeout_s=_PEER_S
            )
        except (PortError, OSError):
            return  # no result
        if seen is not None:
            self._head.post(looked_frame(order.node, seen.result))


# The agent's own, rare questions to Slurm, outside the loop's thread.

_SLURM_S = 6.0


class SlurmLook:
    """The agent's own questions to slurmctld."""

    def __init__(self, jobs: JobsHere, threads: Threads) -> None:
        self._jobs = jobs
        self._threads = threads

    async def is_over(self, job: JobId, restart: int) -> bool:
        """Return whether this run of the job has ended. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.is_over(job, restart), name="job look", timeout_s=_SLURM_S)

    async def restarts(self, job: JobId) -> int:
        """Return how often Slurm has restarted the job. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.restarts(job), name="run look", timeout_s=_SLURM_S)

    async def on(self, node: NodeName) -> Mapping[JobId, int]:
        """Return the uid of each job on the node. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.on(node), name="jobs look", timeout_s=_SLURM_S)

    async def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        """Return the jobs that run on the node. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.bases(node), name="bases look", timeout_s=_SLURM_S)


class JobEyes:
    """The looks at the jobs of this node."""

    def __init__(self, folders: JobFolders) -> None:
        self._folders = folders

    def told(self, opted: OptedIn, before: Stamp | None) -> ProgressLook:
        """Read the job's report in its folder. Never raises."""
        return job_look.look(self._folders.folder(opted.job, opted.uid), PROGRESS, opted.uid, before)

    def has_room(self) -> bool:
        """Return whether there is space for the reports of jobs. Never raises."""
        return job_look.has_room(self._folders.root)

    def newest(self, path: str, uid: int) -> float | None:
        """Return when a file at `path` changed last (Unix s of this node). Raises PortError."""
        return as_user.newest(path, uid)

    def here(self, users: Mapping[JobId, int]) -> frozenset[JobId]:
        """Return which jobs of these users have processes here."""
        return job_processes.jobs_here(users)


class StepEyes:
    """The looks at the steps of this node."""

    def __init__(self, walk: StepWalk, look: Callable[[QueryGpus], Raw]) -> None:
        self._walk, self._look = walk, look

    def now(self) -> float:
        """Return the time (s since the machine's boot)."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def steps(self) -> Sequence[StepLook]:
        """Return a look at each step. Raises OSError."""
        return self._walk.look()

    def owner(self, pid: int) -> int:
        """Return the real user of a process; -1 if it is gone."""
        return proc.real_uid(pid)

    def names(self, keys: Iterable[ProcessKey]) -> Mapping[ProcessKey, RankName | None]:
        """Return the number of each process; reading it may hang."""
        return rank_names(keys)

    def gpus(self) -> Sequence[Gpu] | None:
        """Return what the GPUs of this node do; None if NVML does not answer."""
        raw = self._look(QueryGpus(use_only=True))
        return None if raw.error or raw.hung or raw.gpus is None else raw.gpus

    def network_bytes(self) -> int:
        """Return the bytes that the machine has sent and received through the kernel, also to itself."""
        return job_processes.network_bytes()

    def fabric_bytes(self) -> int:
        """Return the bytes that the machine has sent and received past the kernel."""
        return job_processes.fabric_bytes()

    def sockets(self, keys: Iterable[ProcessKey]) -> Mapping[ProcessKey, frozenset[int] | None]:
        """Return the TCP sockets of each process; None if it may have others. Reading them may hang."""
        return process_sockets.tcp_sockets(keys)

    def tcp_bytes(self, sockets: Set[int]) -> Mapping[int, int]:
        """Return the bytes that each of these sockets carried. Raises OSError."""
        return sock_diag.tcp_bytes(sockets)

    def waits_in(self, pid: int) -> str:
        """Return where a process waits in the kernel."""
        return waits_in(pid)

    def cpu_s(self) -> float:
        """Return the CPU time of the calling thread (s)."""
        return time.thread_time()


class OutputEyes:
    """The looks at the output of jobs with rules of their own, with the rights of the job's user."""

    def output(self, pid: int) -> tuple[str, str] | None:
        """Return what the output of a process is called, and at which path it is read; None if it is no file."""
        return output_of(pid)

    def text(self, path: str, uid: int, *, max_bytes: int) -> str:
        """Return the end of a user's file. Raises PortError."""
        return as_user.tail(path, uid, max_bytes=max_bytes, timeout_s=_READ_S)

    def matches(self, files: Sequence[FileEnd], patterns: Sequence[str], uid: int, *, timeout_s: float) -> Matched:
        """Return what the new lines of a user's files match. Raises PortError."""
        return as_user.matches(files, patterns, uid, timeout_s=timeout_s)


# Signs at the end of a job's output: read with the rights of the job's user, in child processes with a timeout.


MAX_BYTES = 64 << 10
_READ_S = 3.0
"""The timeout of a read: on a busy node the child process that reads takes a second to start."""


class Files(Protocol):
    """The files of users. Raises PortError."""

    def tail(
        self, path: str, uid: int, *, max_bytes: int, timeout_s: float, start: int, starts: Mapping[int, int]
    ) -> str:
        """Return the end of a file, read with the user's rights."""


class JobLogs:
    """The signs at the end of jobs' output files, read in a pool for each user: a file of one user may hang."""

    def __init__(self, opted: OptedBook, clock: Clock, threads: Callable[[], Threads], files: Files = as_user) -> None:
        self._opted, self._clock, self._files = opted, clock, files
        self._threads = PerUser(threads)
        self._reach = OutputReach(lambda job, uid: opted.claim_of_user(job, uid) is not None)

    def note_success(self, line: EndedLine, uid: int) -> None:
        """Note a step that ended well: what it wrote tells nothing of a later failure."""
        self._reach.note_success(line, uid)

    def note_answer(self, line: AskLine, answer: Answer) -> None:
        """Note the answer to a failed step."""
        self._reach.note_failure(line, answer, self._clock.now())

    async def signs(self, line: AskLine) -> tuple[LogSign, ...]:
        """Return the signs of what failed; empty for a job whose output is not known.

        Raises Retryable if the output cannot be read in time.
        """
        out, starts = self._opted.output_of(line.job, line.uid), self._reach.starts(line, self._clock.now())
        if not out.path.startswith("/"):
            return ()
        found = await self._threads.of(line.uid).call(
            lambda: signs_in(self._read(out, starts, line.uid)), name=f"output of {line.job}", timeout_s=_READ_S
        )
        log.info("output read job=%d signs=%s", line.job, ",".join(sign.sign for sign in found) or "none")
        return found

    def _read(self, out: Output, starts: Mapping[int, int], uid: int) -> str:
        return self._files.tail(out.path, uid, max_bytes=MAX_BYTES, timeout_s=_READ_S, start=out.start, starts=starts)
