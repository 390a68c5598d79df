"""The faults a bed can make, by name, the same for every backend."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from steward.model.ids import NodeName


class FaultKind(Enum):
    """The value is the name on the command line."""

    KILL_NODE = "kill-node"
    STOP_NODE = "stop-node"
    RECLAIM_NODE = "reclaim-node"
    START_NODE = "start-node"
    FREEZE_NODE = "freeze-node"
    THAW_NODE = "thaw-node"
    CUT_NODE = "cut-node"
    JOIN_NODE = "join-node"
    SLOW_LINK = "slow-link"
    MEND_LINK = "mend-link"
    KILL_AGENT = "kill-agent"
    START_AGENT = "start-agent"
    RESTART_SERVICES = "restart-services"
    STOP_SERVICES = "stop-services"
    START_SERVICES = "start-services"
    KILL_HEAD = "kill-head"
    START_HEAD = "start-head"
    STOP_HEAD = "stop-head"
    CONT_HEAD = "cont-head"
    HANG_SCONTROL = "hang-scontrol"
    GARBLE_SCONTROL = "garble-scontrol"
    FAIL_SCONTROL = "fail-scontrol"
    MEND_SCONTROL = "mend-scontrol"
    RESTART_SLURMCTLD = "restart-slurmctld"
    KILL_SLURMCTLD = "kill-slurmctld"
    START_SLURMCTLD = "start-slurmctld"
    KILL_SLURMDBD = "kill-slurmdbd"
    START_SLURMDBD = "start-slurmdbd"
    FAIL_CHECK = "fail-check"
    PASS_CHECK = "pass-check"
    KERNEL_LOG = "kernel-log"
    GPU_FAULT = "gpu-fault"
    MEND_GPUS = "mend-gpus"
    REFUSE_LAUNCH = "refuse-launch"
    LIMIT_LAUNCH = "limit-launch"
    ALLOW_LAUNCH = "allow-launch"


class Text(Enum):
    """Whether a fault takes a text."""

    NONE = "none"
    OPTIONAL = "optional"
    NEEDED = "needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a fault: its arguments, what undoes it and what it means."""

    doc: str
    node: bool = False
    text: Text = Text.NONE
    undo: FaultKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """One fault, ready to be injected; made by `fault()`."""

    kind: FaultKind
    node: NodeName | None = None
    text: str = ""

    def __str__(self) -> str:
        return self.kind.value if self.node is None else f"{self.kind.value} {self.node}"


SHAPES: dict[FaultKind, Shape] = {
    FaultKind.KILL_NODE: Shape(
        doc="power cut: slurmd, agent and every job process die at once", node=True, undo=FaultKind.START_NODE
    ),
    FaultKind.STOP_NODE: Shape(
        doc="shut down in good order: all processes are told to end; power is cut so many seconds later (0), "
        "with systemd as soon as they have ended",
        node=True,
        text=Text.OPTIONAL,
        undo=FaultKind.START_NODE,
    ),
    FaultKind.RECLAIM_NODE: Shape(
        doc="the provider says that it takes the machine away soon, as of a spot instance (local backend)",
        node=True,
        text=Text.OPTIONAL,
    ),
    FaultKind.START_NODE: Shape(doc="switch the same machine on again (new boot id)", node=True),
    FaultKind.FREEZE_NODE: Shape(
        doc="every process of the node stands still, connections stay", node=True, undo=FaultKind.THAW_NODE
    ),
    FaultKind.THAW_NODE: Shape(doc="a frozen node goes on", node=True),
    FaultKind.CUT_NODE: Shape(
        doc="the node's network is cut, its processes go on", node=True, undo=FaultKind.JOIN_NODE
    ),
    FaultKind.JOIN_NODE: Shape(doc="the node's network is back", node=True),
    FaultKind.SLOW_LINK: Shape(
        doc="what the node sends is slow: so many Mbit/s (20), until it is switched off",
        node=True,
        text=Text.OPTIONAL,
        undo=FaultKind.MEND_LINK,
    ),
    FaultKind.MEND_LINK: Shape(doc="the node's network is fast again", node=True),
    FaultKind.KILL_AGENT: Shape(
        doc="the agent alone dies and stays dead; slurmd and jobs go on", node=True, undo=FaultKind.START_AGENT
    ),
    FaultKind.START_AGENT: Shape(doc="start the agent again", node=True),
    FaultKind.RESTART_SERVICES: Shape(
        doc="slurmd and the agent end well and start again, as after an upgrade; jobs go on", node=True
    ),
    FaultKind.STOP_SERVICES: Shape(
        doc="slurmd and the agent end well and stay off, as in a long upgrade; jobs go on",
        node=True,
        undo=FaultKind.START_SERVICES,
    ),
    FaultKind.START_SERVICES: Shape(doc="start slurmd and the agent again", node=True),
    FaultKind.KILL_HEAD: Shape(doc="kill -9 stewardd; it stays dead", undo=FaultKind.START_HEAD),
    FaultKind.START_HEAD: Shape(doc="start stewardd again"),
    FaultKind.STOP_HEAD: Shape(doc="SIGSTOP stewardd", undo=FaultKind.CONT_HEAD),
    FaultKind.CONT_HEAD: Shape(doc="SIGCONT stewardd"),
    FaultKind.HANG_SCONTROL: Shape(doc="stewardd's scontrol, sinfo and squeue never end", undo=FaultKind.MEND_SCONTROL),
    FaultKind.GARBLE_SCONTROL: Shape(
        doc="stewardd's scontrol, sinfo and squeue print nonsense", undo=FaultKind.MEND_SCONTROL
    ),
    FaultKind.FAIL_SCONTROL: Shape(doc="stewardd's scontrol, sinfo and squeue fail", undo=FaultKind.MEND_SCONTROL),
    FaultKind.MEND_SCONTROL: Shape(doc="they are Slurm's again"),
    FaultKind.RESTART_SLURMCTLD: Shape(doc="slurmctld ends well and starts again, from its files"),
    FaultKind.KILL_SLURMCTLD: Shape(doc="kill -9 slurmctld; it stays dead", undo=FaultKind.START_SLURMCTLD),
    FaultKind.START_SLURMCTLD: Shape(doc="start slurmctld again, from its files"),
    FaultKind.KILL_SLURMDBD: Shape(doc="kill -9 slurmdbd; it stays dead", undo=FaultKind.START_SLURMDBD),
    FaultKind.START_SLURMDBD: Shape(doc="start slurmdbd again"),
    FaultKind.FAIL_CHECK: Shape(
        doc="a site check on the node fails, with this message",
        node=True,
        text=Text.OPTIONAL,
        undo=FaultKind.PASS_CHECK,
    ),
    FaultKind.PASS_CHECK: Shape(doc="the site check passes again", node=True),
    FaultKind.KERNEL_LOG: Shape(doc="the line appears in the node's kernel log", node=True, text=Text.NEEDED),
    FaultKind.GPU_FAULT: Shape(
        doc="the node's pretended GPUs have this, for example '2 error 15' (tests/fake_nvml/script.h)",
        node=True,
        text=Text.NEEDED,
        undo=FaultKind.MEND_GPUS,
    ),
    FaultKind.MEND_GPUS: Shape(doc="the node's GPUs are well again", node=True),
    FaultKind.REFUSE_LAUNCH: Shape(doc="the provider has no capacity", undo=FaultKind.ALLOW_LAUNCH),
    FaultKind.LIMIT_LAUNCH: Shape(
        doc="the provider has this many machines in all", text=Text.NEEDED, undo=FaultKind.ALLOW_LAUNCH
    ),
    FaultKind.ALLOW_LAUNCH: Shape(doc="the provider has capacity again"),
}


def undoing(found: Iterable[InjectedFault]) -> list[InjectedFault]:
    """What undoes those that can be undone."""
    return [InjectedFault(kind=undo, node=each.node) for each in found if (undo := SHAPES[each.kind].undo) is not None]


def fault(kind: FaultKind, node: str = "", text: str = "") -> InjectedFault:
    """A fault with what it needs. Raises ValueError with what to write instead."""
    shape = SHAPES[kind]
    if shape.node and not node:
        raise ValueError(f"{kind.value} needs a node, for example: inject {kind.value} n1")
    if not shape.node and node:
        raise ValueError(f"{kind.value} takes no node, but {node!r} was given")
    if shape.text is Text.NEEDED and not text:
        example = "n1 'a line'" if shape.node else "2"
        raise ValueError(f"{kind.value} needs a text, for example: inject {kind.value} {example}")
    if shape.text is Text.NONE and text:
        raise ValueError(f"{kind.value} takes no text, but {text!r} was given")
    return InjectedFault(kind=kind, node=NodeName(node) if node else None, text=text)
