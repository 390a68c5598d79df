"""Where things lie in a docker bed's directory, which all its containers mount at /bed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.providers.docker import LIMIT_LAUNCH, REFUSE_LAUNCH
from steward.model.ids import NodeName
from steward.testbed.layout import BedPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerLayout(BedPaths):
    """Paths below one directory. `nodes/NAME` is what faults reach of a machine; a new machine empties it."""

    @property
    def cluster(self) -> str:
        """The name of the bed's network and the label of its containers: the same for the same directory."""
        return f"bed-{hashlib.sha256(str(self.root).encode()).hexdigest()[:10]}"

    @property
    def head(self) -> str:
        """The name of the controller's container."""
        return f"{self.cluster}-head"

    @property
    def commands(self) -> Path:
        """For a person's search path: Slurm's commands and `steward`, each run in the controller's container."""
        return self.root / "bin"

    @property
    def refuse_launch(self) -> Path:
        return self.root / "faults" / REFUSE_LAUNCH

    @property
    def limit_launch(self) -> Path:
        return self.root / "faults" / LIMIT_LAUNCH

    def own(self, node: NodeName) -> Path:
        return self.root / "nodes" / node

    def checks(self, node: NodeName) -> Path:
        return self.own(node) / "checks.d"

    def kernel_log(self, node: NodeName) -> Path:
        return self.own(node) / "kernel.log"

    def slow_link(self, node: NodeName) -> Path:
        """There while the node's network is slow; each start of a machine removes it."""
        return self.own(node) / "slow-link"
