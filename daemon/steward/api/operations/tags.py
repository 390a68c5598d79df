"""AddTags, ListTags, DeleteTags: the one resource that has tags is the cluster."""

from collections.abc import Mapping

from steward.api.json11.errors import not_found
from steward.api.operations.orders import carried
from steward.api.operations.paging import page
from steward.api.operations.sight import Json, Members, Sight, any_sight
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.order import ChangeTags


class Tags:
    def __init__(self, source: Source) -> None:
        self._source = source

    def add(self, caller: Caller, members: Members) -> Json:
        """The answer has all tags of the cluster."""
        put = {tag["Key"]: tag["Value"] for tag in members["Tags"]}
        answer = carried(self._source.commands.give, ChangeTags(who=caller.user, arn=self._arn(members), put=put))
        return {"Tags": _shape(answer.tags)}

    def list_tags(self, _caller: Caller, members: Members) -> Json:
        tags = _shape(self._sight(members).cluster.tags)
        shown, token = page((((tag["Key"],), tag) for tag in tags), members, scope="tags")
        return {"Tags": shown, "NextToken": token}

    def delete(self, caller: Caller, members: Members) -> Json:
        drop = tuple(members["TagKeys"])
        carried(self._source.commands.give, ChangeTags(who=caller.user, arn=self._arn(members), drop=drop))
        return {}

    def _arn(self, members: Members) -> str:
        return self._sight(members).arn

    def _sight(self, members: Members) -> Sight:
        sight = any_sight(self._source)
        if sight is None or members["ResourceArn"] != sight.arn:
            raise not_found(f"Resource {members['ResourceArn']} not found.")
        return sight


def _shape(tags: Mapping[str, str]) -> list[Json]:
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
