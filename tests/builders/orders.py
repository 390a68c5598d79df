"""Orders as callers give them, and what they come to on a picture of `api_cluster`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steward.model.capacity_policy import Pool
from steward.model.group import Group, Role, Rollout
from steward.model.order import (
    AddNodes,
    Carried,
    CreateCluster,
    GroupWish,
    NodeWish,
    Order,
    Refusal,
    RefusalKind,
    TouchNodes,
    UpdateCluster,
    UpdateSoftware,
)
from steward.policy.orders import carry_out
from tests.builders.api_cluster import ApiPicture
from tests.builders.picture import n
from tests.builders.want import but

ANN = "ann"
TYPE = "ml.c5.large"


def a_wish(name: str = "workers", count: int = 3, **fields: Any) -> GroupWish:
    return GroupWish(name=name, count=count, **{"types": (TYPE,), **fields})


def a_controller(name: str = "controller", count: int = 1, **fields: Any) -> GroupWish:
    return a_wish(name, count, role=Role.CONTROLLER, **fields)


def workers(count: int = 4, **fields: Any) -> GroupWish:
    return a_wish("workers", count, **{"role": Role.COMPUTE, "partition": "dev", **fields})


def a_creation(*wishes: GroupWish, **fields: Any) -> CreateCluster:
    return CreateCluster(who=ANN, groups=wishes or (a_controller(), workers()), **{"name": "ml-cluster", **fields})


def an_update(*wishes: GroupWish, **fields: Any) -> UpdateCluster:
    return UpdateCluster(who=ANN, groups=wishes, **{"cluster": "ml-cluster", **fields})


def more(group: str = "workers", count: int = 1, **fields: Any) -> AddNodes:
    return AddNodes(who=ANN, **{"cluster": "ml-cluster", "wishes": ((group, count),), **fields})


def instances(*nodes: str) -> tuple[str, ...]:
    return tuple(f"box/{node}" for node in nodes)


def touching(wish: NodeWish, *nodes: str, **fields: Any) -> TouchNodes:
    return TouchNodes(who=ANN, wish=wish, **{"cluster": "ml-cluster", "ids": instances(*nodes), **fields})


def deletion(*nodes: str, **fields: Any) -> TouchNodes:
    return touching(NodeWish.DELETE, *nodes, **fields)


def a_software_update(**fields: Any) -> UpdateSoftware:
    return UpdateSoftware(who=ANN, **{"cluster": "ml-cluster", **fields})


def group(picture: ApiPicture) -> Group:
    return picture.memory.groups["workers"]


def rollout(picture: ApiPicture) -> Rollout:
    found = group(picture).rollout
    assert found is not None
    return found


def carried(order: Order, picture: ApiPicture) -> Carried:
    return carry_out(order, picture.memory, picture.seen, picture.want)


def after(order: Order, picture: ApiPicture) -> ApiPicture:
    return replace(picture, memory=carried(order, picture).memory)


def tried(order: Order, picture: ApiPicture) -> Carried | None:
    """None: it was refused, in one printable line."""
    try:
        return carried(order, picture)
    except Refusal as refusal:
        text = str(refusal)
    assert text == text.strip()
    assert text.isprintable()
    assert text.isascii()
    return None


def refused(order: Order, picture: ApiPicture) -> tuple[RefusalKind, str]:
    """Why the order was refused. Fails when it was carried out."""
    before = picture.memory
    try:
        carried(order, picture)
    except Refusal as refusal:
        assert picture.memory == before
        return refusal.kind, str(refusal)
    raise AssertionError(f"{order} was carried out")


def with_rules(picture: ApiPicture, **fields: Any) -> ApiPicture:
    return replace(picture, want=replace(picture.want, capacity=but(picture.want.capacity, **fields)))


def with_pool(picture: ApiPicture, name: str, *nodes: str, fixed: bool = False) -> ApiPicture:
    pools: Mapping[str, Pool] = {name: Pool(group=name, nodes=tuple(n(node) for node in nodes), fixed=fixed)}
    return with_rules(picture, pools={**picture.want.capacity.pools, **pools})
