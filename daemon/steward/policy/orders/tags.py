"""AddTags and DeleteTags."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.order import Answer, ChangeTags
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import invalid, limit

MOST_TAGS = 50
RESERVED = "aws:"


def change_tags(order: ChangeTags, desk: Desk) -> Answer:
    """The answer has all tags after the change."""
    cluster = desk.the(order.arn)
    kept = {key: value for key, value in cluster.tags.items() if key not in order.drop}
    tags = kept | dict(order.put)
    check_keys(order.put)
    check_number(tags)
    desk.cluster = replace(cluster, tags=MappingProxyType(tags))
    if tags != dict(cluster.tags):
        desk.tell("cluster.tags", f"{desk.who} changed the tags of cluster {cluster.name}")
    return Answer(cluster_id=cluster.id, tags=MappingProxyType(tags))


def check_tags(tags: Mapping[str, str]) -> None:
    """Those of a new cluster."""
    check_keys(tags)
    check_number(tags)


def check_number(tags: Mapping[str, str]) -> None:
    if len(tags) > MOST_TAGS:
        raise limit(f"{len(tags)} tags; a resource has at most {MOST_TAGS}.")


def check_keys(tags: Iterable[str]) -> None:
    """In any case, as AWS. Old ones may still be taken away."""
    reserved = sorted(key for key in tags if key.lower().startswith(RESERVED))
    if reserved:
        raise invalid(f"Tag keys that begin with {RESERVED} are reserved: {', '.join(reserved)}.")
