"""How our partitions get into Slurm: the file is replaced, Slurm reads it again, what it shows then is looked at.

Nothing but what slurmctld is known to survive is written. Reading the configuration again sets every partition to the
state in its line (tried on 22.05.8, 24.11.5 and 26.05.5): what people or `set_gate` had set is put back at once.
"""

import time
from collections.abc import Mapping
from typing import Protocol

from steward.adapters.slurm import partition_lines, rules
from steward.adapters.slurm.include import IncludeFile
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState
from steward.ports import Permanent, PortError, Retryable

_AGAIN_S = 0.1


class Slurm(Protocol):
    """What this needs of the commands."""

    def nodes(self) -> Mapping[NodeName, Node]: ...

    def jobs(self) -> Mapping[JobId, Job]: ...

    def partitions(self) -> Mapping[str, Partition]: ...

    def set_partition_state(self, name: str, state: PartitionState) -> None: ...

    def reconfigure(self) -> None: ...


def write(slurm: Slurm, include: IncludeFile, text: str, *, patience_s: float) -> None:
    """Does what `SlurmPort.write_partitions` promises; Slurm is given `patience_s` to show the partitions."""
    good = include.good()
    wanted, was = partition_lines.parse(text), partition_lines.parse(good)
    ours = was.states.keys() | partition_lines.parse(include.text()).states.keys()
    rules.may_write(wanted, ours, slurm.partitions(), slurm.nodes())
    rules.may_drop(ours - wanted.states.keys(), slurm.jobs())
    before = slurm.partitions()  # again: nodes and jobs of a large cluster take seconds, and people close partitions
    include.replace(text)
    if wanted.is_like(was) and wanted.states.keys() <= before.keys():
        include.is_good()
        return
    try:
        _read_again(slurm, before, set(wanted.states), patience_s)
    except PortError as error:
        include.replace(good)
        _read_again(slurm, before, set(was.states), patience_s)
        raise Permanent(f"Slurm did not take our partitions, the last good ones are back: {error}") from error
    include.is_good()


def _read_again(slurm: Slurm, before: Mapping[str, Partition], wanted: set[str], patience_s: float) -> None:
    slurm.reconfigure()
    after = _shown(slurm, wanted, time.monotonic() + patience_s)
    for name, old in before.items():
        if name in after and after[name].state is not old.state and old.state is not PartitionState.UNKNOWN:
            slurm.set_partition_state(name, old.state)


def _shown(slurm: Slurm, wanted: set[str], until: float) -> Mapping[str, Partition]:
    """Slurm's partitions, once all of `wanted` are there. Raises Retryable when that does not come."""
    while True:
        found = slurm.partitions()
        missing = sorted(wanted - found.keys())
        if not missing:
            return found
        if time.monotonic() > until:
            raise Retryable(f"partition {missing[0]} is not there after a reconfigure")
        time.sleep(_AGAIN_S)
