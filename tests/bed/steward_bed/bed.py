"""A test bed, whatever it is made of. Tests and the demo know this file, not the backends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from steward.adapters.process import Completed
from steward.model.ids import NodeName
from steward_bed.faults import InjectedFault

Say = Callable[[str], None]
"""Takes one line of progress."""
Overrides = Mapping[str, Mapping[str, object]]
"""Section of steward.toml -> key -> value, laid over what the bed writes."""


class BedError(Exception):
    """One clear line: what was tried, what came back, what to do."""


class Backend(Enum):
    """The backend that the bed is made of."""

    LOCAL = "local"
    DOCKER = "docker"


class MachinePower(Enum):
    """The state of a node's machine. MISSING: the node has no machine now."""

    ON = "on"
    FROZEN = "frozen"
    OFF = "off"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class BedSpec:
    """The bed to bring up. Nodes are n1..nN in the default partition, spares s1..sM in the partition `spare`.

    `slurm` is a version prefix such as "24.11" (empty: whatever is there); `steward` False brings up plain Slurm.
    `contain`: jobs live in cgroups (PrologFlags=Alloc,Contain and task/cgroup); the docker backend only. `heads`: 2 for
    two controllers, a head on each, and a database that these share; the docker backend only. `slurm_conf`: lines that
    slurm.conf has besides its own. `gpus`: so many pretended NVIDIA GPUs on every node, with faults on
    command. `accounting`: slurmdbd holds accounts, QOS and limits, and Slurm enforces them; QOS preempt. `hardware`:
    what slurm.conf says each node has, such as `CPUs=48 RealMemory=196608 Gres=gpu:l4:4` (empty: little; several kinds
    with `;` between them: n1, n2 ... take turns). `silent`: so many more nodes far1..farN that are only in slurm.conf:
    DOWN, in the partition `far`, with no machine. `fixed`: machines are fixed (provider `static`), spares of the
    default partition; the local backend only. `groups`: nothing runs yet but the controller; nodes are for groups made
    through the API. n1..nN are the pool `workers`, whose partition Steward writes itself; any other group's nodes are
    named after it.
    """

    dir: Path
    backend: Backend = Backend.LOCAL
    nodes: int = 6
    spares: int = 0
    slurm: str = ""
    steward: bool = True
    contain: bool = False
    fixed: bool = False
    groups: bool = False
    gpus: int = 0
    accounting: bool = False
    heads: int = 1
    hardware: str = ""
    silent: int = 0
    slurm_conf: str = ""
    settings: Overrides = field(default_factory=dict)

    @property
    def node_names(self) -> tuple[NodeName, ...]:
        return tuple(NodeName(f"n{number}") for number in range(1, self.nodes + 1))

    @property
    def spare_names(self) -> tuple[NodeName, ...]:
        return tuple(NodeName(f"s{number}") for number in range(1, self.spares + 1))

    @property
    def machine_names(self) -> tuple[NodeName, ...]:
        """Nodes and spares."""
        return (*self.node_names, *self.spare_names)

    @property
    def silent_names(self) -> str:
        """As Slurm writes a list of nodes."""
        return f"far[1-{self.silent}]" if self.silent else ""


def spec_of(record: Mapping[str, Any]) -> BedSpec:
    """From a bed's file, which was written with `plain`."""
    return BedSpec(**{**record, "dir": Path(record["dir"]), "backend": Backend(record["backend"])})


def plain(value: object) -> str:
    """For json.dumps: what JSON has no form for."""
    return str(value.value) if isinstance(value, Enum) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """`slurm` is Slurm's own word for the state; empty when Slurm does not answer."""

    name: NodeName
    power: MachinePower
    instance: str
    slurm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BedStatus:
    """`services` tells for each daemon of the controller whether it runs; `faults` names those in force."""

    dir: Path
    backend: Backend
    slurm: str
    nodes: tuple[NodeStatus, ...]
    services: Mapping[str, bool]
    faults: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def healthy(self) -> bool:
        return (
            all(self.services.values())
            and all(node.power is MachinePower.ON for node in self.nodes)
            and not self.faults
        )


class Bed(Protocol):
    """One test bed. Everything raises BedError, with a remedy, when it cannot do what it promises."""

    @property
    def spec(self) -> BedSpec: ...

    @property
    def shared(self) -> Path:
        """A directory under the same path here and on every node, writable for every user: scripts, output, data."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment with which Slurm's commands and `steward` speak to this bed."""

    def up(self, say: Say) -> None:
        """Bring it up; returns when every node is idle and, with Steward, every agent is connected."""

    def down(self) -> None:
        """Leave nothing behind: no process, no file, no container. Doing it again is success."""

    def status(self) -> BedStatus: ...

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, user: str = "") -> Completed:
        """Run a program on the controller in `shared` and the bed's environment, as `user` (empty: who runs the bed).

        Raises Failed (of adapters.process) as `process.run` does.
        """

    def inject(self, fault: InjectedFault) -> None:
        """Make the fault happen; returns when it has. Undoing one that is not in force is success."""

    def restore(self) -> None:
        """Undo every fault in force and switch on every machine that is off."""

    def logs(self) -> Mapping[str, Path]:
        """Name of a log ("slurmctld", "slurmd-n1", "steward-agent-n1", "stewardd") -> file here."""
