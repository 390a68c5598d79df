"""AddTags and DeleteTags."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.arn import quota_arn, scheduler_arn
from steward.model.order import Answer, ChangeTags
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import invalid, limit

MOST_TAGS = 50
RESERVED = "aws:"


def change_tags(order: ChangeTags, desk: Desk) -> Answer:
    """The answer has all tags after the change."""
    quota = next((each for each in desk.quotas.values() if quota_arn(each.id, desk.rules) == order.arn), None)
    if quota is not None:
        tags = _changed(quota.tags, order)
        desk.quotas[quota.id] = replace(quota, tags=tags)
        _tell("quota.tags", f"quota {quota.name}", quota.tags, tags, desk)
        return Answer(made=quota.id, tags=tags)
    scheduler = desk.scheduler
    if scheduler is not None and scheduler_arn(scheduler.id, desk.rules) == order.arn:
        tags = _changed(scheduler.tags, order)
        desk.scheduler = replace(scheduler, tags=tags)
        _tell("scheduler.tags", f"scheduler config {scheduler.name}", scheduler.tags, tags, desk)
        return Answer(made=scheduler.id, tags=tags)
    cluster = desk.the(order.arn)
    tags = _changed(cluster.tags, order)
    desk.cluster = replace(cluster, tags=tags)
    _tell("cluster.tags", f"cluster {cluster.name}", cluster.tags, tags, desk)
    return Answer(cluster_id=cluster.id, tags=tags)


def _changed(has: Mapping[str, str], order: ChangeTags) -> Mapping[str, str]:
    kept = {key: value for key, value in has.items() if key not in order.drop}
    tags = kept | dict(order.put)
    check_keys(order.put)
    check_number(tags)
    return MappingProxyType(tags)


def _tell(kind: str, what: str, before: Mapping[str, str], tags: Mapping[str, str], desk: Desk) -> None:
    if dict(tags) != dict(before):
        desk.tell(kind, f"{desk.who} changed the tags of {what}")


def check_tags(tags: Mapping[str, str]) -> None:
    """Check the tags of a new cluster. Raises Refusal."""
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
