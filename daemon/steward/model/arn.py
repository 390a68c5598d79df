"""What AWS clients call our cluster."""

from steward.model.desired import CapacityPolicy


def arn_of(id: str, policy: CapacityPolicy) -> str:
    """The ARN of the cluster with this id, in the region and the account of the settings."""
    return f"arn:aws:sagemaker:{policy.region}:{policy.account}:cluster/{id}"
