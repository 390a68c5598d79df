"""The operations on compute quotas and on the cluster scheduler config: create, describe, list, update, delete."""

from steward.api.json11.errors import not_found
from steward.api.operations.paging import Key, is_in_time_filter, page
from steward.api.operations.quota_wish import (
    config_shape,
    quota_wish,
    scheduler_shape,
    scheduler_wish,
    switch_word,
    target_shape,
)
from steward.api.operations.sight import Json, Members, carried, snapshot_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import quota_arn, scheduler_arn, slurm_cluster_arns
from steward.model.quota import ComputeQuota, SchedulerConfig
from steward.model.quota_order import (
    CreateQuota,
    CreateScheduler,
    DeleteQuota,
    DeleteScheduler,
    UpdateQuota,
    UpdateScheduler,
)


class Quotas:
    """The operations on quotas of the head's Slurm cluster."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def create(self, caller: Caller, members: Members) -> Json:
        order = CreateQuota(
            who=caller.user,
            cluster=members["ClusterArn"],
            name=members["Name"],
            wish=quota_wish(members),
            tags={tag["Key"]: tag["Value"] for tag in members.get("Tags", ())},
        )
        id = carried(self._source, order).made
        return {"ComputeQuotaArn": self._arn(id), "ComputeQuotaId": id}

    def describe(self, _caller: Caller, members: Members) -> Json:
        """Describe a quota; only its present version is stored."""
        quota = self._quota(members["ComputeQuotaId"])
        asked = members.get("ComputeQuotaVersion", quota.version)
        if asked != quota.version:
            raise not_found(f"Compute quota {quota.id} is at version {quota.version}; version {asked} is not kept.")
        return {
            **self._summary(quota),
            "Description": quota.description or None,
            "FailureReason": quota.failure[:1024] or None,
            "CreatedBy": user_shape(quota.created_by),
            "LastModifiedBy": user_shape(quota.modified_by),
        }

    def list_quotas(self, _caller: Caller, members: Members) -> Json:
        quotas = snapshot_of(self._source).memory.quotas.values()
        found = [quota for quota in quotas if is_asked(quota, self._source, members)]
        keyed = [(self._key(quota, members.get("SortBy", "CreationTime")), self._summary(quota)) for quota in found]
        shown, token = page(keyed, members, scope="compute quotas", descending=True)
        return {"ComputeQuotaSummaries": shown, "NextToken": token}

    def update(self, caller: Caller, members: Members) -> Json:
        order = UpdateQuota(
            who=caller.user,
            id=members["ComputeQuotaId"],
            version=members["TargetVersion"],
            wish=quota_wish(members),
        )
        answer = carried(self._source, order)
        return {"ComputeQuotaArn": self._arn(order.id), "ComputeQuotaVersion": answer.version}

    def delete(self, caller: Caller, members: Members) -> Json:
        """Delete a quota; it is shown as Deleting until its limits have left Slurm."""
        carried(self._source, DeleteQuota(who=caller.user, id=members["ComputeQuotaId"]))
        return {}

    def _quota(self, id: str) -> ComputeQuota:
        quota = snapshot_of(self._source).memory.quotas.get(id)
        if quota is None:
            raise not_found(f"Compute quota {id} not found.")
        return quota

    def _arn(self, id: str) -> str:
        return quota_arn(id, self._source.want.capacity)

    def _summary(self, quota: ComputeQuota) -> Json:
        return {
            "ComputeQuotaArn": self._arn(quota.id),
            "ComputeQuotaId": quota.id,
            "Name": quota.name,
            "ComputeQuotaVersion": quota.version,
            "Status": quota.status.value,
            "ClusterArn": cluster_arns(self._source)[0],
            "ComputeQuotaConfig": config_shape(quota),
            "ComputeQuotaTarget": target_shape(quota),
            "ActivationState": switch_word(on=quota.enabled),
            "CreationTime": quota.created,
            "LastModifiedTime": quota.modified,
        }

    def _key(self, quota: ComputeQuota, by: str) -> Key:
        """Return the quota's sort key."""
        # All quotas are of one cluster: a sort by ClusterArn leaves the order to the id.
        first = {"Name": quota.name, "Status": quota.status.value, "CreationTime": quota.created}.get(by, "")
        return (first, quota.id)


def cluster_arns(source: Source) -> tuple[str, ...]:
    """Return the ARNs of the Slurm cluster, the preferred one first."""
    return slurm_cluster_arns(snapshot_of(source).memory.cluster, source.want.capacity)


def is_asked(one: ComputeQuota | SchedulerConfig, source: Source, members: Members) -> bool:
    """Return whether a list with these filters contains the resource."""
    return (
        members.get("NameContains", "") in one.name
        and members.get("Status", one.status.value) == one.status.value
        and ("ClusterArn" not in members or members["ClusterArn"] in cluster_arns(source))
        and is_in_time_filter(one.created, members, "CreatedAfter", "CreatedBefore")
    )


def user_shape(who: str) -> Json | None:
    return {"UserProfileName": who} if who else None


_PARTS = ("PriorityClasses", "FairShare", "IdleResourceSharing")


class Schedulers:
    """The operations on the scheduler configuration; a cluster has at most one."""

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
        id = carried(self._source, order).made
        return {"ClusterSchedulerConfigArn": self._arn(id), "ClusterSchedulerConfigId": id}

    def describe(self, _caller: Caller, members: Members) -> Json:
        """Describe the configuration; only its present version is stored."""
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
        found = [config] if config is not None and is_asked(config, self._source, members) else []
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
        answer = carried(self._source, order)
        return {"ClusterSchedulerConfigArn": self._arn(order.id), "ClusterSchedulerConfigVersion": answer.version}

    def delete(self, caller: Caller, members: Members) -> Json:
        carried(self._source, DeleteScheduler(who=caller.user, id=members["ClusterSchedulerConfigId"]))
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
