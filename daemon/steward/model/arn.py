"""The names (ARNs) by which AWS clients know our cluster and its quotas."""

import hashlib

from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import Cluster


def arn_of(id: str, policy: CapacityPolicy) -> str:
    """The ARN of the cluster with this id, in the region and the account of the settings."""
    return _arn(policy, f"cluster/{id}")


def slurm_cluster_arns(cluster: Cluster | None, policy: CapacityPolicy) -> tuple[str, ...]:
    """The names of the Slurm cluster in calls about quotas, the best first. A head without a cluster of the API has
    quotas, too; its ARN stays good when such a cluster is made."""
    plain = hashlib.sha256(f"slurm:{policy.region}:{policy.account}".encode()).hexdigest()[:12]
    ids = [cluster.id, plain] if cluster is not None else [plain]
    return tuple(arn_of(id, policy) for id in ids)


def quota_arn(id: str, policy: CapacityPolicy) -> str:
    return _arn(policy, f"compute-quota/{id}")


def scheduler_arn(id: str, policy: CapacityPolicy) -> str:
    return _arn(policy, f"cluster-scheduler-config/{id}")


def _arn(policy: CapacityPolicy, name: str) -> str:
    return f"arn:aws:sagemaker:{policy.region}:{policy.account}:{name}"
