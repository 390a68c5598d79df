"""The names (ARNs) by which AWS clients know the cluster and its quotas."""

import hashlib

from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import Cluster


def arn_of(id: str, policy: CapacityPolicy) -> str:
    """Return the ARN of the cluster with this id, in the region and account of the settings."""
    return _arn(policy, f"cluster/{id}")


def slurm_cluster_arns(cluster: Cluster | None, policy: CapacityPolicy) -> tuple[str, ...]:
    """Return the ARNs of the Slurm cluster that calls about quotas may use, the preferred one first.

    A head without an API cluster has quotas, too; its ARN stays valid after an API cluster is created.
    """
    plain = hashlib.sha256(f"slurm:{policy.region}:{policy.account}".encode()).hexdigest()[:12]
    ids = [cluster.id, plain] if cluster is not None else [plain]
    return tuple(arn_of(id, policy) for id in ids)


def quota_arn(id: str, policy: CapacityPolicy) -> str:
    """Return the ARN of the quota with this id."""
    return _arn(policy, f"compute-quota/{id}")


def scheduler_arn(id: str, policy: CapacityPolicy) -> str:
    """Return the ARN of the scheduler configuration with this id."""
    return _arn(policy, f"cluster-scheduler-config/{id}")


def _arn(policy: CapacityPolicy, name: str) -> str:
    return f"arn:aws:sagemaker:{policy.region}:{policy.account}:{name}"
