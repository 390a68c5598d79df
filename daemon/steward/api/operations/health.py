"""StartClusterHealthCheck: a deep check of the nodes that serve."""

from steward.api.operations.orders import carried
from steward.api.operations.sight import Json, Members, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import arn_of
from steward.model.order import StartHealthCheck


class Health:
    def __init__(self, source: Source) -> None:
        self._source = source

    def start(self, caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        order = StartHealthCheck(
            who=caller.user,
            cluster=members["ClusterName"],
            wishes=tuple(
                (
                    entry["InstanceGroupName"],
                    sight.provider_ids(entry.get("InstanceIds", [])),
                    tuple(entry["DeepHealthChecks"]),
                )
                for entry in members["DeepHealthCheckConfigurations"]
            ),
        )
        answer = carried(self._source.commands.give, order)
        return {"ClusterArn": arn_of(answer.cluster_id, self._source.want.capacity)}
