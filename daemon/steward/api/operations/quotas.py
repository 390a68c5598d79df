"""CreateComputeQuota, DescribeComputeQuota, ListComputeQuotas, UpdateComputeQuota, DeleteComputeQuota."""

from steward.api.json11.errors import not_found
from steward.api.operations.paging import Key, between, page
from steward.api.operations.quota_wish import config_shape, quota_wish, switch_word, target_shape
from steward.api.operations.sight import Json, Members, carried, snapshot_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import quota_arn, slurm_cluster_arns
from steward.model.quota import ComputeQuota
from steward.model.quota_order import CreateQuota, DeleteQuota, UpdateQuota


class Quotas:
    """The operations on quotas of the one Slurm cluster that the head looks after."""

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
        id = carried(self._source.commands.give, order).made
        return {"ComputeQuotaArn": self._arn(id), "ComputeQuotaId": id}

    def describe(self, _caller: Caller, members: Members) -> Json:
        """Only the present version is kept."""
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
        found = [quota for quota in snapshot_of(self._source).memory.quotas.values() if self._is_asked(quota, members)]
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
        answer = carried(self._source.commands.give, order)
        return {"ComputeQuotaArn": self._arn(order.id), "ComputeQuotaVersion": answer.version}

    def delete(self, caller: Caller, members: Members) -> Json:
        """Delete a quota; it is shown as Deleting until its limits have left Slurm."""
        carried(self._source.commands.give, DeleteQuota(who=caller.user, id=members["ComputeQuotaId"]))
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

    def _is_asked(self, quota: ComputeQuota, members: Members) -> bool:
        return (
            members.get("NameContains", "") in quota.name
            and members.get("Status", quota.status.value) == quota.status.value
            and is_here(self._source, members)
            and between(quota.created, members, "CreatedAfter", "CreatedBefore")
        )

    def _key(self, quota: ComputeQuota, by: str) -> Key:
        """All quotas are of one cluster."""
        first = {"Name": quota.name, "Status": quota.status.value, "CreationTime": quota.created}.get(by, "")
        return (first, quota.id)


def cluster_arns(source: Source) -> tuple[str, ...]:
    """The names of the Slurm cluster, the best first."""
    return slurm_cluster_arns(snapshot_of(source).memory.cluster, source.want.capacity)


def is_here(source: Source, members: Members) -> bool:
    """The caller means this cluster, or did not say which."""
    return "ClusterArn" not in members or members["ClusterArn"] in cluster_arns(source)


def user_shape(who: str) -> Json | None:
    return {"UserProfileName": who} if who else None
