"""UpdateClusterSoftware: what the order wishes for, and what is refused."""

from typing import Any

import pytest

from steward.model.group import BatchSize, ClusterStatus, GroupStatus, RolloutState, Version
from steward.model.order import RefusalKind
from tests.builders.api_cluster import ApiPicture, a_group, an_api_cluster
from tests.builders.orders import a_software_update, after, carried, group, refused, rollout

IMAGE = "ami-0123456789abcdef0"


def an_update_of(**fields: Any) -> ApiPicture:
    return after(a_software_update(**{"groups": (("workers", ""),), "image": IMAGE, **fields}), an_api_cluster())


def test_the_order_wishes_for_a_version_of_its_own_and_the_group_is_updating() -> None:
    picture = an_update_of()
    assert (rollout(picture).state, group(picture).status) == (RolloutState.PENDING, GroupStatus.SYSTEM_UPDATING)
    assert group(picture).version == rollout(picture).wanted
    assert (rollout(picture).wanted.image, rollout(picture).previous) == (IMAGE, Version())


def test_without_a_new_image_it_still_is_another_version() -> None:
    once = rollout(an_update_of(image="")).wanted
    assert once.image == ""
    assert once != Version()


def test_a_version_never_comes_twice_also_after_a_rollback() -> None:
    picture = an_update_of(image="")
    first = rollout(picture).wanted
    picture = picture.change_group("workers", version=Version(), status=GroupStatus.IN_SERVICE)
    second = rollout(after(a_software_update(groups=(("workers", ""),)), picture)).wanted
    assert second.serial > first.serial


def test_without_names_every_group_but_the_controllers_is_updated() -> None:
    picture = an_api_cluster().group(a_group("more"))
    groups = after(a_software_update(), picture).memory.groups
    assert {name for name, one in groups.items() if one.rollout} == {"workers", "more"}


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"groups": (("controller", ""),)}, RefusalKind.VALIDATION, "is the controller"),
        ({"groups": (("nobody", ""),)}, RefusalKind.VALIDATION, "no instance group nobody"),
        ({"groups": (("workers", ""), ("workers", ""))}, RefusalKind.VALIDATION, "more than once"),
        ({"batch": BatchSize()}, RefusalKind.VALIDATION, "a batch is at least one node"),
        ({"rollback_batch": BatchSize(percent=101)}, RefusalKind.VALIDATION, "at most 100 percent"),
        ({"alarms": ("hot",)}, RefusalKind.VALIDATION, "capacity.alarms"),
        ({"cluster": "other"}, RefusalKind.NOT_FOUND, "not known"),
    ],
)
def test_impossible_updates_are_refused(fields: dict[str, Any], kind: RefusalKind, text: str) -> None:
    said = refused(a_software_update(**fields), an_api_cluster())
    assert said[0] is kind
    assert text in said[1]


@pytest.mark.parametrize(
    "status", [GroupStatus.CREATING, GroupStatus.UPDATING, GroupStatus.SYSTEM_UPDATING, GroupStatus.DELETING]
)
def test_a_group_that_is_busy_is_not_updated(status: GroupStatus) -> None:
    picture = an_api_cluster().change_group("workers", status=status)
    assert refused(a_software_update(groups=(("workers", ""),)), picture)[0] is RefusalKind.CONFLICT


def test_a_classic_cluster_is_updating_as_a_whole() -> None:
    picture = an_api_cluster().cluster(continuous=False)
    cluster = carried(a_software_update(), picture).memory.cluster
    assert cluster is not None
    assert cluster.status is ClusterStatus.SYSTEM_UPDATING
