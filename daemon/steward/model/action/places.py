"""Where jobs may start: partitions that are ours, and reservations of ours."""

from dataclasses import dataclass

from steward.model.action.base import BaseAction
from steward.model.ids import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNodes(BaseAction):
    """Have Slurm start no new job on exactly these nodes for at most `seconds`, in a reservation of ours that no job is
    ever in. Nodes that the reservation had before and are not named are everybody's again."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNodes(BaseAction):
    """End such a reservation."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(BaseAction):
    """Open (UP) or close (DOWN) a partition that is ours. Never cancels a job."""

    partition: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePartitions(BaseAction):
    """Our own include file: partitions that exist because of API groups. `text` is the whole file; validated, the last
    good one is put back when Slurm refuses it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveNodes(BaseAction):
    """Have Slurm keep nodes for deep check `name` (its reservation, partition and job) for at most `seconds`."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitDeep(BaseAction):
    """Submit the job of a deep check: `argv` once on each of its nodes. Output goes to `output` on the first one."""

    name: str
    nodes: frozenset[NodeName]
    argv: tuple[str, ...]
    seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNodes(BaseAction):
    """Cancel the job of a deep check, if one is there, and give its nodes back to everybody."""

    name: str
