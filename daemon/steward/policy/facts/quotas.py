"""The quotas in force."""

from steward.model.quota import ComputeQuota, QuotaStatus
from steward.policy.draft import Draft

_GOING = (QuotaStatus.DELETING, QuotaStatus.DELETED)


def in_force(draft: Draft) -> dict[str, ComputeQuota]:
    """Return the quotas in force, by team."""
    all_of = (draft.quotas[id] for id in sorted(draft.quotas))
    return {quota.team: quota for quota in all_of if quota.enabled and quota.status not in _GOING}
