"""Slurm's power states: read from a node, and set through slurmctld.

Facts, tried on real 22.05.8 and 24.11.5:

- With `SuspendTime=INFINITE` (the default) power saving is off: `state=power_up` is accepted and nothing happens.
- `power_up` sent while a node still powers down is accepted and lost.
- `power_down_force` does not take back a `power_up` for which Slurm has not run ResumeProgram yet (it does so every
  `power_save_interval`, 10 s): the node powers down and then up, each time that the command is given.
- A second `power_up` while a node is POWERING_UP leaves POWER_UP on it for as long as it is up: it has registered and
  runs jobs. Only with POWERED_DOWN does POWER_UP mean that Slurm has not begun. Powered down, such a node comes up once
  more before it stays down.
- `power_down_force` clears DRAIN and its reason; `power_up` keeps DRAIN and clears the reason.
- A DOWN node stays DOWN, with its reason, while it is powered down; once it comes up it is IDLE: only DRAIN keeps jobs
  off it.
- A node that does not register in ResumeTimeout is set DOWN (`ResumeTimeout reached`) and powered down by Slurm itself;
  a later `power_up` brings it up.
- When ResumeProgram or SuspendProgram ends, 24.11 kills what is left in its process group (SIGTERM, SIGKILL after
  10 ms); 22.05 leaves it running. What it starts and leaves behind must be in a session of its own before it ends.
- A powered-down `State=CLOUD` node is in no answer at all, unless slurm.conf has `PrivateData=cloud`; neither is one
  that was just told to power up, until Slurm runs ResumeProgram.
"""

from enum import Enum

from steward.adapters.slurm.commands import SlurmCommands
from steward.adapters.slurm.words import node_list
from steward.model.ids import NodeName
from steward.model.node import Node

_MAX_BYTES = 1 << 20


class Power(Enum):
    """The power state of a node."""

    OFF = "off"
    ASKED = "asked"
    """Told to power up, and Slurm has not begun: a `power_down` now does not cancel that."""
    COMING = "coming"
    ON = "on"
    GOING = "going"


def power_of(node: Node | None) -> Power:
    """Return the power state of a node as read; a node that Slurm does not show is powered down."""
    if node is None:
        return Power.OFF
    if node.flags & {"POWERING_DOWN", "POWER_DOWN"}:
        return Power.GOING
    if "POWERING_UP" in node.flags:
        return Power.COMING
    if "POWERED_DOWN" in node.flags:
        return Power.ASKED if "POWER_UP" in node.flags else Power.OFF
    return Power.ON


class PowerSwitch:
    """The power switch of nodes, by `scontrol update`. Raises Retryable, Permanent or Stale, by Slurm's refusal."""

    def __init__(self, *, conf: str = "", timeout_s: float = 10.0) -> None:
        self._commands = SlurmCommands(conf=conf, timeout_s=timeout_s, max_bytes=_MAX_BYTES)

    def up(self, node: NodeName) -> None:
        """Power the node up."""
        self._set_state(node, "power_up")

    def down(self, node: NodeName) -> None:
        """Power the node down at once: its jobs are ended."""
        self._set_state(node, "power_down_force")

    def _set_state(self, node: NodeName, word: str) -> None:
        """Set the node's state."""
        self._commands.write("update", f"nodename={node_list([node])}", f"state={word}")
