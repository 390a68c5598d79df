"""Jobs of teams in a picture: those that run with their quota's or borrowed resources, and those that wait."""

from dataclasses import replace
from typing import Any

from steward.model.accounting import Capabilities
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.quota import ComputeQuota, Share
from tests.builders.picture import Picture
from tests.builders.quota import G6, LISTS, a_picture, a_quota, tres

UNBOUND = (Share(machine_type=G6.name, accelerators=100),)


def own(team: str, gpus: int, **fields: Any) -> ComputeQuota:
    """It lends, and borrows without bound."""
    return replace(a_quota(team, gpus=gpus, borrow_absolute=UNBOUND, weight=10), **fields)


def teams(*quotas: ComputeQuota, can: Capabilities = LISTS, machines: int = 2) -> Picture:
    """On machines of four GPUs each: n1, n2 ..."""
    return a_picture(*quotas, can=can, machines=machines)


def runs(picture: Picture, id: int, team: str, gpus: int, end: str = "g", on: str = "n1", **fields: Any) -> Picture:
    """`end` of its QOS: g is its quota's, b borrowed."""
    size = tres(gpus)
    given = {"qos": f"stw-{team}-{end}", "account": team, "requested": size, "allocated": size, **fields}
    return picture.job(id, on=(on,), **given).node(on, base=NodeBase.MIXED)


def waits(picture: Picture, id: int, team: str, gpus: int, **fields: Any) -> Picture:
    given: dict[str, Any] = {"qos": f"stw-{team}-g", "reason": "None", "submitted": picture.now, "node_count": 1}
    given |= {"account": team, "requested": tres(gpus), **fields}
    return picture.job(id, on=(), state=JobState.PENDING, **given).change_job(id, started=None)
