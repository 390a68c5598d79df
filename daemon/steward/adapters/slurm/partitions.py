"""Partitions as `scontrol show partitions` prints them: the same text in every Slurm, and only admins write into it."""

from steward.adapters.process import show
from steward.adapters.slurm.words import expand
from steward.model.partition import Partition, PartitionState
from steward.ports import Retryable

_STATES = {state.value: state for state in PartitionState}
_NONE = "No partitions in the system"


def partitions(answer: str) -> dict[str, Partition]:
    """Every partition of `scontrol --all --oneliner show partitions`. Raises Retryable when a line cannot be read."""
    lines = [line for line in answer.splitlines() if line.strip() and line.strip() != _NONE]
    if not lines and _NONE not in answer:
        raise Retryable("Slurm's answer has no partition in it: not believed")
    return {found.name: found for found in map(_partition, lines)}


def _partition(line: str) -> Partition:
    words = dict(word.partition("=")[::2] for word in line.split())
    try:
        name, state, nodes = words["PartitionName"], words["State"], words["Nodes"]
    except KeyError as error:
        raise Retryable(f"cannot read one of Slurm's partitions: no {error} in {show(line)!r}") from error
    return Partition(name=name, state=_STATES.get(state, PartitionState.UNKNOWN), nodes=expand(nodes))
