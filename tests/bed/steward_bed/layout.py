"""Where things lie in a bed's directory: what is the same in every one, a local bed's own and a docker bed's."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steward.model.ids import NodeName
from steward_bed.providers.local import FAULTS, MACHINES
from steward_bed.providers.local_machine import LIMIT_LAUNCH, REFUSE_LAUNCH

MANIFEST = "bed.json"
PARTITIONS = "partitions.conf"
LONGEST_DIR = 70
"""A unix socket's path has at most 107 bytes, and ours end in `/run/agent-NODE.sock`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedPaths:
    """Paths below the directory of any bed, whatever it is made of."""

    root: Path

    @property
    def manifest(self) -> Path:
        return self.root / MANIFEST

    @property
    def slurm_conf(self) -> Path:
        return self.root / "etc" / "slurm.conf"

    @property
    def steward_toml(self) -> Path:
        return self.root / "etc" / "steward.toml"

    @property
    def shared(self) -> Path:
        return self.root / "shared"

    @property
    def gpus(self) -> Path:
        """The pretended GPU driver; absent in a bed without GPUs."""
        return self.root / "gpu"

    @property
    def wrappers(self) -> Path:
        """First in stewardd's search path; empty but for a fault."""
        return self.root / "wrappers"

    @property
    def refuse_launch(self) -> Path:
        return self.root / FAULTS / REFUSE_LAUNCH

    @property
    def limit_launch(self) -> Path:
        return self.root / FAULTS / LIMIT_LAUNCH

    def node(self, name: NodeName | str = "%n") -> Path:
        """What faults reach of a machine; of a local bed all of its disk. Empty on a new machine."""
        return self.root / "nodes" / name

    def checks(self, node: NodeName) -> Path:
        return self.node(node) / "checks.d"

    def kernel_log(self, node: NodeName) -> Path:
        return self.node(node) / "kernel.log"

    def logs(self) -> Mapping[str, Path]:
        """Name of a log -> file."""
        return {path.stem: path for path in sorted((self.root / "log").glob("*.log"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(BedPaths):
    """Paths below one directory; `%n` in a path stands for the node's name, as in slurm.conf."""

    @property
    def machines(self) -> Path:
        return self.root / MACHINES

    @property
    def partitions(self) -> Path:
        """The file that Steward writes for slurm.conf."""
        return self.slurm_conf.parent / PARTITIONS

    @property
    def node_power(self) -> Path:
        """The stand-in for a site's power command in a bed of fixed machines."""
        return self.root / "etc" / "node-power"

    @property
    def munge_key(self) -> Path:
        return self.root / "private" / "munge.key"

    @property
    def munge_socket(self) -> Path:
        return self.root / "run" / "munge.sock"

    @property
    def database(self) -> Path:
        """The database of slurmdbd; absent in a bed without accounting."""
        return self.root / "private" / "database"

    @property
    def database_socket(self) -> Path:
        return self.root / "private" / "database.sock"

    @property
    def agent_socket(self) -> Path:
        return self.root / "run" / "agent-%n.sock"

    @property
    def gpu_devices(self) -> Path:
        return self.root / "dev"

    @property
    def controller(self) -> Path:
        """State of slurmctld and stewardd, and who runs on the controller."""
        return self.root / "controller"

    def log(self, name: str) -> Path:
        return self.root / "log" / f"{name}.log"

    def output(self, name: str) -> Path:
        """The output of a daemon beside its own log, such as why it cannot start."""
        return self.root / "log" / f"{name}.out"

    def make(self) -> None:
        """All directories, readable for every user as slurmd needs, but for the key's."""
        for path in ("etc", "run", "log", "dev", "nodes", "faults", "wrappers", "controller", "private", "shared"):
            (self.root / path).mkdir(exist_ok=True, mode=0o755)
        (self.root / "private").chmod(0o700)
        self.shared.chmod(0o1777)


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerLayout(BedPaths):
    """Paths below one directory, which all its containers mount at /bed."""

    @property
    def cluster(self) -> str:
        """The name of the bed's network and the label of its containers: the same for the same directory."""
        return f"bed-{hashlib.sha256(str(self.root).encode()).hexdigest()[:10]}"

    @property
    def head(self) -> str:
        """The name of the controller's container."""
        return self.machine("head")

    def machine(self, name: str) -> str:
        """The name of the container of a machine that is no node."""
        return f"{self.cluster}-{name}"

    @property
    def commands(self) -> Path:
        """For a person's search path: Slurm's commands and `steward`, each run in the controller's container."""
        return self.root / "bin"

    def slow_link(self, node: NodeName) -> Path:
        """There while the node's network is slow; each start of a machine removes it."""
        return self.node(node) / "slow-link"
