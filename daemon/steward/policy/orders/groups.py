"""Turn a caller's wish into a group: a new one, or an existing one with the changes of the wish."""

import json
from dataclasses import replace
from typing import Any

from steward.model.group import Goal, Group, GroupStatus, Role, Version
from steward.model.order import GroupWish
from steward.model.setup import Lifecycle
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.person import kinds_of
from steward.policy.orders.refuse import conflict, invalid

_ROLE_ARN = "ExecutionRole"


def new_group(wish: GroupWish, draft: OrderDraft) -> Group:
    """Return a new group with status Creating; the time limit for its MinInstanceCount runs from now.

    Raises Refusal for a check on start that Steward does not have.
    """
    role = wish.role or Role.COMPUTE
    return Group(
        name=wish.name,
        role=role,
        types=wish.types,
        goal=Goal(target=wish.count, minimum=_first_minimum(wish, role)),
        status=GroupStatus.CREATING,
        created=draft.now,
        partition=wish.partition or "",
        features=_features(wish, draft),
        lifecycle=wish.lifecycle or Lifecycle(),
        version=Version(image=wish.image or "", release=wish.release or ""),
        on_start_checks=_on_start_checks(wish) or (),
        threads_per_core=wish.threads_per_core or 0,
        minimum_since=draft.now,
        extras=wish.extras,
    )


def _on_start_checks(wish: GroupWish) -> tuple[str, ...] | None:
    """Return the checks on start. Raises Refusal for an unknown one."""
    # an instance whose check does not exist would serve without being measured
    kinds_of(wish.on_start_checks or ())
    return wish.on_start_checks


def _first_minimum(wish: GroupWish, role: Role) -> int:
    """Return the minimum of a new group."""
    if wish.minimum is not None:
        return wish.minimum
    # as in HyperPod: the group waits for no worker, but for the controller or one login instance
    return 0 if role is Role.COMPUTE else min(1, wish.count)


def _features(wish: GroupWish, draft: OrderDraft) -> frozenset[str]:
    declared = [draft.rules.types[name].features for name in wish.types if name in draft.rules.types]
    return frozenset().union(*declared)


def changed_group(group: Group, wish: GroupWish, draft: OrderDraft) -> Group:
    """Return the group with the changes of the wish, except its goal.

    Raises Refusal for members that no update can change.
    """
    if group.status is GroupStatus.SYSTEM_UPDATING:
        raise conflict(f"Instance group {group.name} is SystemUpdating: wait until its software update is over.")
    _check_same(group, wish)
    checks = _on_start_checks(wish)
    return replace(
        group,
        partition=group.partition if wish.partition is None else wish.partition,
        lifecycle=wish.lifecycle or group.lifecycle,
        on_start_checks=group.on_start_checks if checks is None else checks,
        extras=with_extras(group.extras, wish.extras),
    )


def changed_goal(group: Group, wish: GroupWish) -> Goal:
    """Return the group's new goal; a minimum that is not given stays, but is never above the new count."""
    if wish.minimum is not None:
        return Goal(target=wish.count, minimum=wish.minimum)
    return Goal(target=wish.count, minimum=min(group.goal.minimum, wish.count))


def _check_same(group: Group, wish: GroupWish) -> None:
    """Check that the members that UpdateCluster cannot change are unchanged. Raises Refusal."""
    had, given = _extra(group.extras, _ROLE_ARN), _extra(wish.extras, _ROLE_ARN)
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("InstanceType", ", ".join(group.types), ", ".join(wish.types) or None),
        ("ThreadsPerCore", group.threads_per_core or "not set", wish.threads_per_core),
        (_ROLE_ARN, had or "not set", given),
        ("SlurmConfig.NodeType", group.role.value, wish.role.value if wish.role else None),
    )
    for member, old, new in pairs:
        if new is not None and new != old:
            raise invalid(f"Instance group {group.name}: {member} cannot be changed from {old} to {new}.")
    for member, old, new in (
        ("ImageId", group.version.image, wish.image),
        ("ImageReleaseVersion", group.version.release, wish.release),
    ):
        if new is not None and new != old:
            raise invalid(f"Instance group {group.name}: change {member} with UpdateClusterSoftware.")


def _extra(extras: str, key: str) -> Any:
    return json.loads(extras).get(key)


def with_extras(old: str, new: str) -> str:
    """Return both JSON objects merged, as JSON text; a new value replaces the old one of the same key."""
    return json.dumps(json.loads(old) | json.loads(new), sort_keys=True)
