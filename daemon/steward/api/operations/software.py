"""UpdateClusterSoftware."""

from steward.api.json11.errors import invalid
from steward.api.operations.orders import carried
from steward.api.operations.sight import Json, Members
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import arn_of
from steward.model.group import BatchSize
from steward.model.order import UpdateSoftware

_PERCENT = "CAPACITY_PERCENTAGE"


class Software:
    def __init__(self, source: Source) -> None:
        self._source = source

    def update(self, caller: Caller, members: Members) -> Json:
        """Without DeploymentConfig all nodes at once."""
        config = members.get("DeploymentConfig", {})
        rolling = config.get("RollingUpdatePolicy", {})
        image = members.get("ImageId", "")
        order = UpdateSoftware(
            who=caller.user,
            cluster=members["ClusterName"],
            groups=tuple(
                (entry["InstanceGroupName"], entry.get("ImageReleaseVersion", ""))
                for entry in members.get("InstanceGroups", ())
            ),
            image="" if image == "default" else image,
            batch=_batch(rolling, "MaximumBatchSize"),
            rollback_batch=_batch(rolling, "RollbackMaximumBatchSize"),
            wait_s=float(config.get("WaitIntervalInSeconds", 0)),
            alarms=tuple(alarm["AlarmName"] for alarm in config.get("AutoRollbackConfiguration", ())),
        )
        answer = carried(self._source.commands.give, order)
        return {"ClusterArn": arn_of(answer.cluster_id, self._source.want.capacity)}


def _batch(rolling: Members, name: str) -> BatchSize | None:
    size = rolling.get(name)
    if size is None:
        return None
    if size["Type"] != _PERCENT:
        return BatchSize(count=size["Value"])
    if size["Value"] > 100:
        raise invalid(f"{name}: {size['Value']} percent is more than the whole group.")
    return BatchSize(percent=size["Value"])
