"""The view of one API request: the last snapshot with the cluster, and the API's names of things.

ARNs, node ids and event ids are computed, not stored.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from steward.api.json11.errors import ApiError, Code, not_found
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import arn_of
from steward.model.capacity_policy import CapacityPolicy
from steward.model.case import Case
from steward.model.deep import DeepRun
from steward.model.group import Cluster, Group
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance
from steward.model.memory import Memory
from steward.model.observed import AgentView, Observed
from steward.model.order import Order, OrderAnswer, Refusal
from steward.model.slot import SlotRecord
from steward.model.text import capitalized
from steward.workflows.snapshot import Snapshot

_NODE_ID = re.compile(r"i-[a-f0-9]{8}(?:[a-f0-9]{9})?")
_EVENT_DIGITS = 12


def node_id(instance: InstanceId) -> str:
    """Return the provider's own id if it has the form of EC2's, else a stable id computed from it."""
    if _NODE_ID.fullmatch(instance):
        return instance
    return f"i-{hashlib.sha256(instance.encode()).hexdigest()[:17]}"


def event_id(cluster: Cluster, number: int) -> str:
    """Return the event's sequence number in the form of a UUID."""
    return f"{_event_prefix(cluster)}{number:0{_EVENT_DIGITS}x}"


def event_number(cluster: Cluster, id: str) -> int | None:
    """Return the sequence number in an id made by `event_id`; None for any other id."""
    prefix, digits = id[:-_EVENT_DIGITS], id[-_EVENT_DIGITS:]
    return int(digits, 16) if prefix == _event_prefix(cluster) else None


def _event_prefix(cluster: Cluster) -> str:
    digest = hashlib.sha256(f"events of {cluster.id}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-"


Json = dict[str, Any]
Members = Mapping[str, Any]
Handler = Callable[[Caller, Members], Mapping[str, Any]]
"""The handler of an operation, run in a thread.

It gets valid input, without null members and with times as Unix seconds, and returns the output's members. It refuses
with ApiError; Retryable becomes ServiceUnavailable, any other exception InternalFailure.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The data of one request. `policy` is the site's configuration of capacity, `at` the picture's time (Unix s)."""

    at: float
    cluster: Cluster
    memory: Memory
    seen: Observed
    policy: CapacityPolicy
    cases: Mapping[NodeName, Case]
    """The open repairs by node."""
    deeps: Mapping[NodeName, DeepRun] = field(default_factory=dict)
    """Deep checks that occupy their nodes, by node."""

    @property
    def arn(self) -> str:
        return arn_of(self.cluster.id, self.policy)

    def slots_of(self, group: Group) -> list[SlotRecord]:
        return [slot for slot in self.memory.slots.values() if slot.group == group.name]

    def instance_of(self, slot: SlotRecord) -> Instance | None:
        """Return the slot's instance as the provider lists it now; None if it does not."""
        return None if slot.instance is None else self.seen.instances.get(slot.instance)

    def agent_of(self, slot: SlotRecord) -> AgentView | None:
        return self.seen.agents.get(slot.node)

    def slot_with_id(self, id: str) -> SlotRecord | None:
        """Return the slot whose node id in the API is `id`; None if there is none."""
        return next((slot for slot, shown in self._shown_ids() if shown == id), None)

    def slot_with_logical(self, logical: str) -> SlotRecord | None:
        return next((slot for slot in self.memory.slots.values() if slot.logical == logical), None)

    def provider_ids(self, ids: list[str]) -> tuple[str, ...]:
        """Return the provider's own ids for ids of the API; an unknown id is kept."""
        own = {shown: str(slot.instance) for slot, shown in self._shown_ids()}
        return tuple(own.get(id, id) for id in ids)

    def _shown_ids(self) -> Iterator[tuple[SlotRecord, str]]:
        for slot in self.memory.slots.values():
            if slot.instance is not None:
                yield slot, node_id(slot.instance)


def snapshot_of(source: Source) -> Snapshot:
    """Return the last snapshot. Raises ApiError (ServiceUnavailable) before the head's first cycle has ended."""
    snapshot = source.latest()
    if snapshot is None:
        why = source.standstill_text() or "the head has not finished its first look at the cluster; see its log"
        raise ApiError(Code.UNAVAILABLE, f"{capitalized(why)}.")
    return snapshot


def any_sight(source: Source) -> Sight | None:
    """Return the view of the cluster; None if there is no cluster."""
    snapshot = snapshot_of(source)
    memory = snapshot.memory
    if memory.cluster is None:
        return None
    return Sight(
        at=snapshot.at,
        cluster=memory.cluster,
        memory=memory,
        seen=snapshot.seen,
        policy=source.want.capacity,
        deeps={node: run for run in memory.deeps.values() if run.has_nodes for node in run.nodes - run.results.keys()},
        cases={case.node: case for case in memory.cases.values() if case.is_open},
    )


def sight_of(source: Source, name_or_arn: str) -> Sight:
    """Return the view of this cluster. Raises ApiError (ResourceNotFound) if there is no such cluster."""
    sight = any_sight(source)
    if sight is None or name_or_arn not in (sight.cluster.name, sight.arn):
        raise not_found(f"Cluster with name {name_or_arn} not found.")
    return sight


def carried(source: Source, order: Order) -> OrderAnswer:
    """Give the order to the cycle and return its answer.

    Raises ApiError if the order is refused, Retryable if no cycle carried it out in time.
    """
    try:
        return source.commands.give(order)
    except Refusal as refusal:
        raise ApiError(Code(refusal.kind.value), str(refusal)) from refusal
