"""Deep checks in the words of `picture`."""

from dataclasses import replace
from typing import Any

from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, DeepState, slurm_name
from steward.model.ids import NodeName
from steward.model.reservation import Reservation
from tests.builders.picture import T0, Picture, n

ALL = frozenset(DeepKind)
HOUR_S = 3600.0


def a_run(*nodes: str, **fields: Any) -> DeepRun:
    """Asked for by ann a moment ago, waiting."""
    default: dict[str, Any] = {
        "cause": DeepCause.ASKED,
        "who": "ann",
        "kinds": ALL,
        "asked": T0 - 60,
        "entered": T0 - 1,
    }
    return DeepRun(**{"id": "d1", **default, "nodes": frozenset(map(NodeName, nodes)), **fields})


def done(result: DeepResult, *nodes: str, **fields: Any) -> DeepRun:
    """Over a moment ago, with one result for all."""
    results = {n(name): result for name in nodes}
    why = {n(name): "memory.keep: a bit flipped" for name in nodes}
    return a_run(*nodes, **{"state": DeepState.DONE, "results": results, "why": why, "ended": T0 - 1, **fields})


def with_run(picture: Picture, run: DeepRun) -> Picture:
    deeps = {**picture.memory.deeps, run.id: run}
    looked = picture.see(reservations_at=picture.now)
    return replace(looked, memory=replace(picture.memory, deeps=deeps))


def reserved(picture: Picture, run: DeepRun) -> Picture:
    """Slurm keeps its nodes."""
    made = Reservation(name=slurm_name(run.token), nodes=run.nodes, starts=T0, ends=T0 + HOUR_S)
    return picture.see(reservations={**picture.seen.reservations, made.name: made})
