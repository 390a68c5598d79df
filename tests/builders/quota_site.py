"""A site whose teams have quotas that Slurm knows: what runs and waits there, and one turn after the other."""

from dataclasses import replace
from typing import Any

from steward.model.accounting import Association, Capabilities, Qos
from steward.model.action import (
    DropQos,
    DropTeam,
    MarkJob,
    MoveJob,
    RequeueJob,
    SetNodeCount,
    SetQos,
    SetTeam,
    SignalJob,
)
from steward.model.agent_action import Action
from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.partition import Partition, PartitionState
from steward.model.quota import ComputeQuota, Share
from steward.model.reservation import Reservation
from tests.builders.picture import Picture
from tests.builders.quota import G6, LISTS, a_picture, a_quota, tres, written

MINE = (
    SetQos,
    SetTeam,
    DropQos,
    DropTeam,
    MoveJob,
    MarkJob,
    SetNodeCount,
    RequeueJob,
    SignalJob,
)
UNBOUND = (Share(machine_type=G6.name, accelerators=100),)


def own(team: str, gpus: int, **fields: Any) -> ComputeQuota:
    return replace(a_quota(team, gpus=gpus, borrow_absolute=UNBOUND, weight=10), **fields)


def done(picture: Picture) -> tuple[Picture, list[Action]]:
    """One turn of the head, and what Slurm is like afterwards."""
    plan = picture.plan()
    mine: list[Action] = [action for action in plan.actions if isinstance(action, MINE)]
    return written(replace(picture, memory=plan.memory), mine).after(1.0), mine


def settled(picture: Picture) -> Picture:
    """Until nothing is left to do."""
    for _ in range(6):
        picture, actions = done(picture)
        if not actions:
            return picture
    raise AssertionError(actions)


def a_site(can: Capabilities = LISTS, *quotas: ComputeQuota, machines: int = 2) -> Picture:
    return settled(a_picture(*(quotas or (own("a", 4), own("b", 4))), can=can, machines=machines))


def waits(picture: Picture, id: int, team: str, gpus: int, **fields: Any) -> Picture:
    given: dict[str, Any] = {
        "qos": f"stw-{team}-g",
        "reason": "None",
        "submitted": picture.now,
        "node_count": 1,
        **fields,
    }
    pending = picture.job(id, on=(), state=JobState.PENDING, account=team, requested=tres(gpus), **given)
    return pending.change_job(id, started=None)


def runs(picture: Picture, id: int, team: str, gpus: int, end: str = "g", on: str = "n1", **fields: Any) -> Picture:
    given: dict[str, Any] = {
        "qos": f"stw-{team}-{end}",
        "account": team,
        "requested": tres(gpus),
        "allocated": tres(gpus),
        **fields,
    }
    return picture.job(id, on=(on,), **given).node(on, base=NodeBase.MIXED)


def reserved(picture: Picture, *nodes: str, **fields: Any) -> Picture:
    """A reservation of the site (maintenance, a course) has these nodes."""
    made = Reservation(name="course", nodes=frozenset(map(NodeName, nodes)), ends=picture.now + 9000, **fields)
    return picture.see(reservations={made.name: made})


def borrowed_and_wanted_back(can: Capabilities) -> Picture:
    picture = runs(runs(a_site(can), 1, "a", 4), 2, "a", 2, "b", "n2", started=1000.0)
    picture = settled(runs(picture, 3, "a", 2, "b", "n2", started=2000.0))
    return waits(picture, 4, "b", 2)


def limited(picture: Picture, tres: str = "gres/gpu", *, whose: str = "QOS") -> Picture:
    """The site has a limit of its own: in the QOS of the partition, or on all accounts together."""
    accounting = picture.seen.accounting
    assert accounting is not None
    if whose == "QOS":
        qos = {**accounting.qos, "site": Qos(name="site", limits={tres: 1})}
        return with_partition(picture, "site").see(accounting=replace(accounting, qos=qos))
    every = (*accounting.associations, Association(account="root", limits={tres: 1}))
    return picture.see(accounting=replace(accounting, associations=every))


def with_partition(picture: Picture, own_qos: str = "") -> Picture:
    """Slurm has told of the partition, and of its own QOS."""
    main = Partition(name="main", state=PartitionState.UP, own_qos=own_qos)
    return picture.see(partitions={**picture.seen.partitions, main.name: main})


def counted_by_slurm(picture: Picture, account: str, gpus: int) -> Picture:
    """So many GPUs count as used in the account."""
    accounting = picture.seen.accounting
    assert accounting is not None
    used = {"gres/gpu": gpus, "gres/gpu:l4": gpus}
    every = tuple(replace(a, used=used) if a.account == account and not a.user else a for a in accounting.associations)
    return picture.see(accounting=replace(accounting, associations=every, at=picture.now))
