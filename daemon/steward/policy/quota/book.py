"""The part of memory that is about quotas: one object reads and writes it."""

from dataclasses import replace
from typing import Any

from steward.model.ids import JobId
from steward.model.memory import Memory
from steward.model.quota import Eviction, QuotaJob
from steward.policy.kept import Kept

KEPT = 8
"""Past evictions of one job that are remembered one by one."""


class QuotaBook:
    """The quotas' part of memory, to be changed while a plan is made."""

    def __init__(self, memory: Memory) -> None:
        self.quotas, self.scheduler = Kept(memory.quotas), memory.scheduler
        self.jobs, self.writes = Kept(memory.quota_jobs), Kept(memory.quota_writes)

    def add_eviction(self, id: JobId, team: str, eviction: Eviction) -> None:
        """This run of a job, of that team, gives way."""
        memory = self.jobs.get(id) or QuotaJob(team=team)
        kept = (*memory.evictions, eviction)[-KEPT:]
        self.jobs[id] = replace(memory, evictions=kept, count=memory.count + 1)

    def gave_way(self, id: JobId, restart: int) -> str:
        """Why this run of a job had to give way; empty: it had not."""
        memory = self.jobs.get(id)
        found = [each.text for each in memory.evictions if each.restart == restart] if memory is not None else []
        return f"it {found[-1]}" if found else ""

    def stored(self) -> dict[str, Any]:
        """The fields of Memory."""
        return {
            "quotas": self.quotas.frozen(),
            "scheduler": self.scheduler,
            "quota_jobs": self.jobs.frozen(),
            "quota_writes": self.writes.frozen(),
        }
