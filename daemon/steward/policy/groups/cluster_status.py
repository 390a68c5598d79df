"""The cluster's status: continuous clusters serve with their controller, classic ones as a whole or not at all."""

from dataclasses import replace

from steward.model.events import Level
from steward.model.group import Cluster, ClusterStatus, Group, GroupStatus, Role
from steward.model.slot import Hitch
from steward.policy.draft import Draft
from steward.policy.groups.members import current, staying
from steward.policy.groups.status import roll_back, rolled_key


def keep_cluster(draft: Draft) -> None:
    """Move the cluster's status by its groups."""
    cluster = draft.cluster
    if cluster is None or cluster.status in (ClusterStatus.DELETING, ClusterStatus.FAILED):
        return
    status = _continuous(cluster, draft) if cluster.continuous else _classic(cluster, draft)
    if draft.cluster is not None and status is not draft.cluster.status:
        draft.cluster = replace(draft.cluster, status=status)
        level = Level.ERROR if status is ClusterStatus.FAILED else Level.INFO
        draft.tell("cluster.status", f"cluster {cluster.name} is {status.value}", level=level)


def _continuous(cluster: Cluster, draft: Draft) -> ClusterStatus:
    """InService with one controller (and one login node, if there is such a group), and so it stays while scaling."""
    if cluster.status is not ClusterStatus.CREATING:
        return cluster.status
    needed = [_of_role(role, draft) for role in (Role.CONTROLLER, Role.LOGIN)]
    is_there = all(not groups or any(current(g, draft) for g in groups) for groups in needed)
    return ClusterStatus.IN_SERVICE if is_there else cluster.status


def _of_role(role: Role, draft: Draft) -> list[Group]:
    wanted = (g for g in draft.groups.values() if g.role is role and g.goal.target > 0)
    return [g for g in wanted if g.status is not GroupStatus.DELETING]


def _classic(cluster: Cluster, draft: Draft) -> ClusterStatus:
    """All or nothing: what one group cannot have is taken back from all."""
    if cluster.status is ClusterStatus.ROLLING_BACK:
        return _after_rollback(cluster, draft)
    gated = [g for g in draft.groups.values() if g.status.is_gated]
    is_new = cluster.status is ClusterStatus.CREATING
    failed = _why_failed(draft)
    if failed:
        for name in sorted(g.name for g in gated):
            roll_back(draft.groups[name], failed, draft)
        draft.cluster = replace(draft.cluster or cluster, message=failed)
        return ClusterStatus.ROLLING_BACK
    if gated:
        return ClusterStatus.CREATING if is_new else ClusterStatus.UPDATING
    is_updated = any(g.status is GroupStatus.SYSTEM_UPDATING for g in draft.groups.values())
    return ClusterStatus.SYSTEM_UPDATING if is_updated else ClusterStatus.IN_SERVICE


def _why_failed(draft: Draft) -> str:
    """A group was rolled back by its clock, or a launch failed so often that it will not work."""
    for group in sorted(draft.groups.values(), key=lambda g: g.name):
        if group.message.startswith("rollback") and draft.noted.get(rolled_key(group.name)) == draft.now:
            return f"group {group.name}: {group.message}"
        for record in staying(group, draft) if group.status.is_gated else ():
            if record.hitch is Hitch.OTHER and record.tries >= draft.want.repair.max_launches:
                return f"{record.node} of group {group.name}: {record.trouble}"
    return ""


def _after_rollback(cluster: Cluster, draft: Draft) -> ClusterStatus:
    """RollingBack until what was too much is gone; then a new cluster has failed, an old one is as it was."""
    if any(record.is_leaving for record in draft.records.values()):
        return ClusterStatus.ROLLING_BACK
    has_any = any(g.goal.target for g in draft.groups.values())
    return ClusterStatus.IN_SERVICE if has_any else ClusterStatus.FAILED
