"""What is done for elastic runs: another size, one more replica job, one less."""

from dataclasses import dataclass

from steward.model.action.base import BaseAction
from steward.model.ids import JobId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRun(BaseAction):
    """Have a run's coordinator, which the agent of `node` speaks for, go to `generation` with exactly these members.
    All ranks save first, for `grace_s` seconds at most; 0: at once."""

    run: JobId
    node: NodeName
    generation: int
    members: frozenset[NodeName]
    grace_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReplica(BaseAction):
    """Have the agent of `node` submit a replica job of the run as the run's user, once per token. `minutes` 0: as long
    as the base's script says; `qos` empty: as it says, too."""

    run: JobId
    node: NodeName
    token: str
    nodes: int
    grace_s: int
    minutes: int = 0
    qos: str = ""
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReplica(BaseAction):
    """End a replica job of the run `run`. Stale when it is over, Permanent for a job that is none of the run."""

    run: JobId
    job: JobId
