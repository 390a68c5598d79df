"""Reading the configuration again opens every partition; what people had closed is closed again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.partitions import write
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState

OURS = "NodeSet=steward-w-1 Feature=w-1\nPartitionName=dev Nodes=steward-w-1 State=UP MaxTime=INFINITE\n"
UP, DRAIN = PartitionState.UP, PartitionState.DRAIN


@dataclass
class Busy:
    """A Slurm with one partition, which an admin closes while its jobs are read."""

    table: dict[str, Partition] = field(default_factory=lambda: {"main": Partition(name="main", state=UP)})

    def nodes(self) -> Mapping[NodeName, Node]:
        return {}

    def jobs(self) -> Mapping[JobId, Job]:
        self.set_partition_state("main", DRAIN)
        return {}

    def partitions(self) -> Mapping[str, Partition]:
        return dict(self.table)

    def set_partition_state(self, name: str, state: PartitionState) -> None:
        self.table[name] = replace(self.table[name], state=state)

    def reconfigure(self) -> None:
        self.table = {name: Partition(name=name, state=UP) for name in ("main", "dev")}


def test_a_partition_that_is_closed_while_ours_are_written_stays_closed(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("include p.conf\n")
    (tmp_path / "p.conf").write_text("")
    slurm = Busy()
    include = IncludeFile(tmp_path / "p.conf", str(tmp_path / "slurm.conf"))
    write(slurm, include, OURS, patience_s=1.0)
    assert {name: one.state for name, one in slurm.table.items()} == {"main": DRAIN, "dev": UP}
