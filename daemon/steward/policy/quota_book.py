"""The memory of jobs that were evicted or marked for quotas, while a plan is made."""

from dataclasses import replace

from steward.model.ids import JobId
from steward.model.quota import Eviction, QuotaJob
from steward.policy.kept import Kept

KEPT = 8
"""Past evictions of one job that are remembered one by one."""


class QuotaJobBook(Kept[JobId, QuotaJob]):
    """The jobs that were evicted or marked for a quota, by id."""

    __slots__ = ()

    def add_eviction(self, id: JobId, team: str, eviction: Eviction) -> None:
        """Remember that this run of a job, of that team, is evicted."""
        memory = self.get(id) or QuotaJob(team=team)
        kept = (*memory.evictions, eviction)[-KEPT:]
        self[id] = replace(memory, evictions=kept, count=memory.count + 1)

    def was_evicted(self, id: JobId, restart: int) -> str:
        """Return why this run of a job was evicted; empty if it was not."""
        memory = self.get(id)
        found = [each.text for each in memory.evictions if each.restart == restart] if memory is not None else []
        return f"it {found[-1]}" if found else ""
