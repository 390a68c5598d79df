"""The agent's own questions to Slurm: whether a job is over (while the head is away), and the jobs on this node."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from steward.adapters.process import Failed, run
from steward.model.ids import JobId, NodeName
from steward.ports import Retryable

_TIMEOUT_S = 5.0
_STATE = re.compile(r"\bJobState=([A-Z_]+)")
_RESTARTS = re.compile(r"\bRestarts=([0-9]+)")
_BASE = re.compile(r"([0-9]+) +([0-9]+) +([0-9]+) +(\S+)")
_OVER = frozenset(
    (
        *("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "REVOKED"),
        *("CANCELLED", "COMPLETED", "COMPLETING", "FAILED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"),
        *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL"),
    )
)


def run_is_over(text: str, restart: int) -> bool:
    """Return whether the answer of `scontrol -o show job` shows that the job's run `restart` has ended or is ending.

    An unknown state counts as still running.
    """
    state, restarts = _STATE.search(text), _RESTARTS.search(text)
    if state is None:
        return False
    return state[1] in _OVER or (restarts is not None and int(restarts[1]) != restart)


def owners_of(text: str) -> Mapping[JobId, int]:
    """Return the user of each job, from lines of a job id and a user id. Raises Retryable for any other line."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not all(len(line) == 2 and line[0].isdigit() and line[1].isdigit() for line in lines):
        raise Retryable("squeue: the answer is not a list of jobs and users")
    return {JobId(int(job)): int(uid) for job, uid in lines}


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A running batch job that may be the base of an elastic run."""

    uid: int
    nodes: int
    host: NodeName
    """The batch host."""


def bases_of(text: str) -> Mapping[JobId, Base]:
    """Return the jobs from lines of id, uid, number of nodes and batch host; other lines are ignored."""
    found = (_BASE.fullmatch(line.strip()) for line in text.splitlines())
    return {JobId(int(one[1])): Base(uid=int(one[2]), nodes=int(one[3]), host=NodeName(one[4])) for one in found if one}


class JobsHere:
    """The agent's questions to Slurm about jobs. Calls block: use them in a thread."""

    def __init__(self, slurm_conf: str) -> None:
        self._env = {"SLURM_CONF": slurm_conf} if slurm_conf else {}

    def is_over(self, job: JobId, restart: int) -> bool:
        """Return whether the job's run `restart` is over. Raises Retryable if slurmctld does not answer."""
        try:
            return run_is_over(self._shown(job), restart)
        except Failed as error:
            if error.completed is not None and "Invalid job id" in error.completed.error_text:
                return True
            raise

    def restarts(self, job: JobId) -> int:
        """Return how often the job was restarted. Raises Retryable if Slurm does not tell."""
        found = _RESTARTS.search(self._shown(job))
        if found is None:
            raise Retryable(f"scontrol does not tell the restarts of job {job}")
        return int(found[1])

    def _shown(self, job: JobId) -> str:
        return run(("scontrol", "-o", "show", "job", str(job)), timeout_s=_TIMEOUT_S, env=self._env).text

    def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        """Return the batch jobs that run on the node. Raises Retryable if slurmctld does not answer."""
        argv = ("squeue", "--noheader", "--states=RUNNING", "--nodelist", node, "--format", "%A %U %D %B")
        return bases_of(run(argv, timeout_s=_TIMEOUT_S, env=self._env).text)

    def on(self, node: NodeName) -> Mapping[JobId, int]:
        """Return the jobs that have the node now, with their users. Raises Retryable if slurmctld does not answer."""
        argv = ("squeue", "--noheader", "--nodelist", node, "--format", "%A %U")
        return owners_of(run(argv, timeout_s=_TIMEOUT_S, env=self._env).text)
