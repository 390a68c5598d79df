"""CreateClusterSchedulerConfig, DescribeClusterSchedulerConfig, ListClusterSchedulerConfigs, Update..., Delete..."""

from steward.api.json11.errors import not_found
from steward.api.operations.paging import between, page
from steward.api.operations.quota_wish import scheduler_shape, scheduler_wish
from steward.api.operations.quotas import cluster_arns, is_here, user_shape
from steward.api.operations.sight import Json, Members, carried, snapshot_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import scheduler_arn
from steward.model.quota import SchedulerConfig
from steward.model.quota_order import CreateScheduler, DeleteScheduler, UpdateScheduler

_PARTS = ("PriorityClasses", "FairShare", "IdleResourceSharing")


class Schedulers:
    """There is one at most."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def create(self, caller: Caller, members: Members) -> Json:
        order = CreateScheduler(
            who=caller.user,
            cluster=members["ClusterArn"],
            name=members["Name"],
            wish=scheduler_wish(members),
            tags={tag["Key"]: tag["Value"] for tag in members.get("Tags", ())},
        )
        id = carried(self._source.commands.give, order).made
        return {"ClusterSchedulerConfigArn": self._arn(id), "ClusterSchedulerConfigId": id}

    def describe(self, _caller: Caller, members: Members) -> Json:
        """Only the present version is kept."""
        config = self._config(members["ClusterSchedulerConfigId"])
        asked = members.get("ClusterSchedulerConfigVersion", config.version)
        if asked != config.version:
            text = f"Cluster scheduler configuration {config.id} is at version {config.version}"
            raise not_found(f"{text}; version {asked} is not kept.")
        return {
            **self._summary(config),
            "Description": config.description or None,
            "FailureReason": config.failure[:1024] or None,
            "StatusDetails": dict.fromkeys(_PARTS, config.status.value),
            "SchedulerConfig": scheduler_shape(config),
            "CreatedBy": user_shape(config.created_by),
            "LastModifiedBy": user_shape(config.modified_by),
        }

    def list_schedulers(self, _caller: Caller, members: Members) -> Json:
        config = snapshot_of(self._source).memory.scheduler
        found = [config] if config is not None and self._is_asked(config, members) else []
        keyed = [((each.created, each.id), self._summary(each)) for each in found]
        shown, token = page(keyed, members, scope="scheduler configurations", descending=True)
        return {"ClusterSchedulerConfigSummaries": shown, "NextToken": token}

    def update(self, caller: Caller, members: Members) -> Json:
        order = UpdateScheduler(
            who=caller.user,
            id=members["ClusterSchedulerConfigId"],
            version=members["TargetVersion"],
            wish=scheduler_wish(members),
        )
        answer = carried(self._source.commands.give, order)
        return {"ClusterSchedulerConfigArn": self._arn(order.id), "ClusterSchedulerConfigVersion": answer.version}

    def delete(self, caller: Caller, members: Members) -> Json:
        carried(self._source.commands.give, DeleteScheduler(who=caller.user, id=members["ClusterSchedulerConfigId"]))
        return {}

    def _config(self, id: str) -> SchedulerConfig:
        config = snapshot_of(self._source).memory.scheduler
        if config is None or config.id != id:
            raise not_found(f"Cluster scheduler configuration {id} not found.")
        return config

    def _arn(self, id: str) -> str:
        return scheduler_arn(id, self._source.want.capacity)

    def _summary(self, config: SchedulerConfig) -> Json:
        return {
            "ClusterSchedulerConfigArn": self._arn(config.id),
            "ClusterSchedulerConfigId": config.id,
            "ClusterSchedulerConfigVersion": config.version,
            "Name": config.name,
            "CreationTime": config.created,
            "LastModifiedTime": config.modified,
            "Status": config.status.value,
            "ClusterArn": cluster_arns(self._source)[0],
        }

    def _is_asked(self, config: SchedulerConfig, members: Members) -> bool:
        return (
            members.get("NameContains", "") in config.name
            and members.get("Status", config.status.value) == config.status.value
            and is_here(self._source, members)
            and between(config.created, members, "CreatedAfter", "CreatedBefore")
        )
