"""The part of memory that is about quotas: one object reads and writes it."""

from types import MappingProxyType
from typing import Any

from steward.model.memory import Memory


class QuotaBook:
    """As memory has it, to be changed while a plan is made."""

    def __init__(self, memory: Memory) -> None:
        self.quotas, self.scheduler = dict(memory.quotas), memory.scheduler
        self.jobs, self.writes = dict(memory.quota_jobs), dict(memory.quota_writes)

    def stored(self) -> dict[str, Any]:
        """The fields of Memory."""
        return {
            "quotas": MappingProxyType(self.quotas),
            "scheduler": self.scheduler,
            "quota_jobs": MappingProxyType(self.jobs),
            "quota_writes": MappingProxyType(self.writes),
        }
