"""Job 7, whose node died and whose other nodes are kept for it."""

from dataclasses import replace
from typing import Any

from steward.model.case import CaseStep
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation, keep_name
from tests.builders.picture import Picture, a_cluster

J = JobId(7)


NAME = keep_name(J)


def full() -> Picture:
    """Four nodes: the job on three, somebody else's on the fourth."""
    picture = a_cluster(4).node("n4", base=NodeBase.ALLOCATED).job().job(8, on=("n4",), user_id=1)
    for name in ("n1", "n2", "n3"):
        picture = picture.node(name, base=NodeBase.ALLOCATED)
    return picture.opted_in().then()


def reserved(picture: Picture) -> Picture:
    """Slurm keeps what we asked for."""
    kept = picture.memory.jobs[J].kept
    assert kept is not None
    made = Reservation(name=NAME, nodes=kept.nodes, starts=picture.now, ends=picture.now + 1920)
    return picture.see(reservations={NAME: made}, reservations_at=picture.now)


def waiting() -> Picture:
    """n2 is down by our mark, the job back in the queue, its other nodes idle and kept; a machine for n2 is made."""
    picture = full().lost("n2").then()
    picture = reserved(picture).marked("n2").requeued(node_count=3)
    for name in ("n1", "n3"):
        picture = picture.node(name, base=NodeBase.IDLE)
    return picture.then(1.2)


def n2_is_back(picture: Picture) -> Picture:
    memory = picture.memory
    cases = {id: replace(c, step=CaseStep.CLOSED, closed=picture.now) for id, c in memory.cases.items()}
    back = replace(picture, memory=replace(memory, cases=cases))
    return back.node("n2", base=NodeBase.IDLE, flags=frozenset(), reason=None).agent(
        "n2", connected=True, lost_at=None, witness=None, last_heard=back.now
    )


def rival(picture: Picture, **fields: Any) -> Picture:
    default = {"state": JobState.PENDING, "node_count": 1, "user_id": 1, "started": None, "reason": "Resources"}
    return picture.job(9, on=(), **{**default, "eligible": picture.now, "nodes": frozenset(), **fields})
