"""AddTags, ListTags, DeleteTags: of the cluster, of compute quotas and of the cluster scheduler config."""

from collections.abc import Mapping

from steward.api.json11.errors import not_found
from steward.api.operations.paging import page
from steward.api.operations.sight import Json, Members, any_sight, carried, snapshot_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import quota_arn, scheduler_arn
from steward.model.order import ChangeTags


class Tags:
    def __init__(self, source: Source) -> None:
        self._source = source

    def add(self, caller: Caller, members: Members) -> Json:
        """The answer has all tags of the resource."""
        put = {tag["Key"]: tag["Value"] for tag in members["Tags"]}
        answer = carried(self._source.commands.give, ChangeTags(who=caller.user, arn=self._arn(members), put=put))
        return {"Tags": _shape(answer.tags)}

    def list_tags(self, _caller: Caller, members: Members) -> Json:
        tags = _shape(self._tags(members))
        shown, token = page((((tag["Key"],), tag) for tag in tags), members, scope="tags")
        return {"Tags": shown, "NextToken": token}

    def delete(self, caller: Caller, members: Members) -> Json:
        drop = tuple(members["TagKeys"])
        carried(self._source.commands.give, ChangeTags(who=caller.user, arn=self._arn(members), drop=drop))
        return {}

    def _arn(self, members: Members) -> str:
        """The resource that is named, when it is there."""
        self._tags(members)
        return str(members["ResourceArn"])

    def _tags(self, members: Members) -> Mapping[str, str]:
        memory, rules = snapshot_of(self._source).memory, self._source.want.capacity
        of = {quota_arn(quota.id, rules): quota.tags for quota in memory.quotas.values()}
        if memory.scheduler is not None:
            of[scheduler_arn(memory.scheduler.id, rules)] = memory.scheduler.tags
        if (sight := any_sight(self._source)) is not None:
            of[sight.arn] = sight.cluster.tags
        if members["ResourceArn"] not in of:
            raise not_found(f"Resource {members['ResourceArn']} not found.")
        return of[members["ResourceArn"]]


def _shape(tags: Mapping[str, str]) -> list[Json]:
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
