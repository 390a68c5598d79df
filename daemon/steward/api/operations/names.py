"""How things are called through the API: ARNs, node ids, event ids. All are computed, none is stored."""

import hashlib
import re

from steward.model.arn import arn_of
from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import Cluster
from steward.model.ids import InstanceId

_NODE_ID = re.compile(r"i-[a-f0-9]{8}(?:[a-f0-9]{9})?")
_EVENT_DIGITS = 12


def cluster_arn(cluster: Cluster, policy: CapacityPolicy) -> str:
    return arn_of(cluster.id, policy)


def is_named(cluster: Cluster, policy: CapacityPolicy, name_or_arn: str) -> bool:
    """The caller means this cluster."""
    return name_or_arn in (cluster.name, cluster_arn(cluster, policy))


def node_id(instance: InstanceId) -> str:
    """The provider's own id where it looks like EC2's; else one that is made from it and is always the same."""
    if _NODE_ID.fullmatch(instance):
        return instance
    return f"i-{hashlib.sha256(instance.encode()).hexdigest()[:17]}"


def event_id(cluster: Cluster, number: int) -> str:
    """A UUID's form around the event's sequence number."""
    return f"{_event_prefix(cluster)}{number:0{_EVENT_DIGITS}x}"


def event_number(cluster: Cluster, id: str) -> int | None:
    """The sequence number in an id that `event_id` made; None for any other."""
    prefix, digits = id[:-_EVENT_DIGITS], id[-_EVENT_DIGITS:]
    return int(digits, 16) if prefix == _event_prefix(cluster) else None


def _event_prefix(cluster: Cluster) -> str:
    digest = hashlib.sha256(f"events of {cluster.id}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-"
