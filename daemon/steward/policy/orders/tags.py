"""AddTags and DeleteTags."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.order import Answer, ChangeTags
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import limit

MOST_TAGS = 50


def change_tags(order: ChangeTags, desk: Desk) -> Answer:
    """The answer has all tags after the change."""
    cluster = desk.the(order.arn)
    kept = {key: value for key, value in cluster.tags.items() if key not in order.drop}
    tags = kept | dict(order.put)
    check_tags(tags)
    desk.cluster = replace(cluster, tags=MappingProxyType(tags))
    if tags != dict(cluster.tags):
        desk.tell("cluster.tags", f"{desk.who} changed the tags of cluster {cluster.name}")
    return Answer(cluster_id=cluster.id, tags=MappingProxyType(tags))


def check_tags(tags: Mapping[str, str]) -> None:
    if len(tags) > MOST_TAGS:
        raise limit(f"{len(tags)} tags; a resource has at most {MOST_TAGS}.")
