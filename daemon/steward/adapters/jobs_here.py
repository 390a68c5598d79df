"""What an agent asks Slurm by itself while the head is away: is a job over, and which jobs are on this node."""

import re

from steward.adapters.process import Failed, run
from steward.model.ids import JobId, NodeName
from steward.ports import Retryable

_TIMEOUT_S = 5.0
_STATE = re.compile(r"\bJobState=([A-Z_]+)")
_RESTARTS = re.compile(r"\bRestarts=([0-9]+)")
_OVER = frozenset(
    (
        *("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "REVOKED"),
        *("CANCELLED", "COMPLETED", "COMPLETING", "FAILED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"),
        *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL"),
    )
)


def run_is_over(text: str, restart: int) -> bool:
    """Whether `scontrol -o show job` says that the job's run number `restart` has ended, or is about to.

    A state that we do not know is no reason to let go.
    """
    state, restarts = _STATE.search(text), _RESTARTS.search(text)
    if state is None:
        return False
    return state[1] in _OVER or (restarts is not None and int(restarts[1]) != restart)


class JobsHere:
    """Blocking calls: use them in a thread."""

    def __init__(self, slurm_conf: str) -> None:
        self._env = {"SLURM_CONF": slurm_conf} if slurm_conf else {}

    def is_over(self, job: JobId, restart: int) -> bool:
        """Raises Retryable when slurmctld does not answer."""
        argv = ("scontrol", "-o", "show", "job", str(job))
        try:
            return run_is_over(run(argv, timeout_s=_TIMEOUT_S, env=self._env).text, restart)
        except Failed as error:
            if error.completed is not None and "Invalid job id" in error.completed.error_text:
                return True
            raise

    def on(self, node: NodeName) -> frozenset[JobId]:
        """Jobs that have this node now. Raises Retryable when slurmctld does not answer."""
        argv = ("squeue", "--noheader", "--nodelist", node, "--format", "%A")
        words = run(argv, timeout_s=_TIMEOUT_S, env=self._env).text.split()
        if not all(word.isdigit() for word in words):
            raise Retryable("squeue: the answer is not a list of job ids")
        return frozenset(JobId(int(word)) for word in words)
