"""What steps of one plan found, kept for the steps after them. Each field belongs to the function that it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steward.model.ids import JobId, NodeName
from steward.model.job import Job


@dataclass(slots=True)
class Found:
    companies: dict[tuple[int, float], Mapping[NodeName, Sequence[Job]]] = field(default_factory=dict)
    """`bad_company`, by what it was asked."""
    reach: tuple[int, int] | None = None
    cleaning: frozenset[NodeName] | None = None
    """Nodes where lost runs of remembered jobs clean up: `has_jobs`."""
    restless: frozenset[JobId] | None = None
    """Remembered jobs that were not at rest when it was first asked for: `restless`."""
    settled: frozenset[NodeName] | None = None
    """Nodes whose slots were settled when it was first asked for: `move_slots`."""
    standings: dict[NodeName, Any] = field(default_factory=dict)
    going: tuple[int, frozenset[NodeName]] = (0, frozenset())
    """Nodes that this plan takes out of service, after so many actions: `going`."""
