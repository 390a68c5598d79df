"""The agent's own, rare questions to Slurm, off the loop's thread."""

from collections.abc import Mapping

from steward.adapters.node.jobs_here import Base, JobsHere
from steward.adapters.offload import Threads
from steward.model.ids import JobId, NodeName

_TIMEOUT_S = 6.0


class SlurmLook:
    def __init__(self, jobs: JobsHere, threads: Threads) -> None:
        self._jobs = jobs
        self._threads = threads

    async def is_over(self, job: JobId, restart: int) -> bool:
        """Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.is_over(job, restart), name="job look", timeout_s=_TIMEOUT_S)

    async def on(self, node: NodeName) -> Mapping[JobId, int]:
        """The users of the jobs there. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.on(node), name="jobs look", timeout_s=_TIMEOUT_S)

    async def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        """The jobs that run there. Raises Retryable when slurmctld does not answer."""
        return await self._threads.call(lambda: self._jobs.bases(node), name="bases look", timeout_s=_TIMEOUT_S)
