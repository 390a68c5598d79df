"""Which nodes and jobs a look, an action or a change is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from steward.model.ids import JobId, NodeName

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    nodes: frozenset[NodeName] = frozenset()
    jobs: frozenset[JobId] = frozenset()

    def __or__(self, other: "Subject") -> "Subject":
        return Subject(nodes=self.nodes | other.nodes, jobs=self.jobs | other.jobs)

    def __bool__(self) -> bool:
        return bool(self.nodes or self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTimes(Generic[K]):
    """When records of one kind were read (Unix s): all of them at `swept`, those of `looked` once more since."""

    swept: float
    looked: Mapping[K, float] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, key: K) -> float:
        """When this one was read last; for one that is not there, when that was seen."""
        return self.looked.get(key, self.swept)
