"""A group as a wish makes it: a new one, or an existing one with what the wish says."""

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
    """A new group: its status is Creating, and its MinCount clock runs from now. Raises Refusal for a check on start
    that nothing here does."""
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
    """A machine that waited for a check nobody makes would serve with nothing measured. Raises Refusal."""
    kinds_of(wish.on_start_checks or ())
    return wish.on_start_checks


def _first_minimum(wish: GroupWish, role: Role) -> int:
    """The minimum of a new group, as HyperPod: workers come as they can be had, a controller and one login machine are
    waited for."""
    if wish.minimum is not None:
        return wish.minimum
    return 0 if role is Role.COMPUTE else min(1, wish.count)


def _features(wish: GroupWish, draft: OrderDraft) -> frozenset[str]:
    declared = [draft.rules.types[name].features for name in wish.types if name in draft.rules.types]
    return frozenset().union(*declared)


def changed_group(group: Group, wish: GroupWish, draft: OrderDraft) -> Group:
    """The group as the wish has it, all but its goal. Raises Refusal for what no update can change."""
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
    """A minimum that is not said again stays, but never above a lower count."""
    if wish.minimum is not None:
        return Goal(target=wish.count, minimum=wish.minimum)
    return Goal(target=wish.count, minimum=min(group.goal.minimum, wish.count))


def _check_same(group: Group, wish: GroupWish) -> None:
    """Members that UpdateCluster must repeat unchanged."""
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
    """The JSON text of both objects; what is given anew replaces what was there."""
    return json.dumps(json.loads(old) | json.loads(new), sort_keys=True)
