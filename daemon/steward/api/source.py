"""Where the API's answers come from. Filled in by the head's wiring."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from steward.api.metrics import Metrics
from steward.model.desired import Desired
from steward.model.ids import NodeName
from steward.model.observed import AgentDetail
from steward.ports import Clock, StorePort
from steward.workflows.commands import Commands
from steward.workflows.cycle import Planner
from steward.workflows.doctor import Line
from steward.workflows.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Everything is safe to use from several threads. `started`: Unix seconds."""

    cluster: str
    version: str
    started: float
    clock: Clock
    latest: Callable[[], Snapshot | None]
    details: Callable[[], Mapping[NodeName, AgentDetail]]
    want: Desired
    plan: Planner
    store: StorePort
    commands: Commands
    metrics: Metrics
    doctor: Callable[[], list[Line]]
