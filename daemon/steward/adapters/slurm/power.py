"""Slurm's power states, read from a node and asked of slurmctld.

Facts, tried on real 22.05.8:

- With `SuspendTime=INFINITE` (the default) power saving is off: `state=power_up` is accepted and nothing happens.
- `power_up` sent while a node still powers down is accepted and lost.
- `power_down_force` sent before Slurm has run ResumeProgram for a `power_up` is accepted and lost: the node comes up.
- `power_down_force` clears DRAIN and its reason; `power_up` keeps DRAIN and clears the reason.
- A powered-down `State=CLOUD` node is in no answer at all, unless slurm.conf has `PrivateData=cloud`; neither is one
  that was just told to power up, until Slurm runs ResumeProgram.
"""

from enum import Enum

from steward.adapters.process import Failed, run
from steward.adapters.slurm.refusals import refusal
from steward.adapters.slurm.words import node_list
from steward.model.ids import NodeName
from steward.model.node import Node

_TIMED_OUT = "ResumeTimeout reached"


class Power(Enum):
    OFF = "off"
    COMING = "coming"
    ON = "on"
    GOING = "going"
    FAILED = "failed"
    """It did not come up in ResumeTimeout: Slurm has taken it out of service."""


def power_of(node: Node | None) -> Power:
    """Of a node as read; one that Slurm does not show is powered down."""
    if node is None:
        return Power.OFF
    if node.is_down and node.reason is not None and node.reason.text.startswith(_TIMED_OUT):
        return Power.FAILED
    if node.flags & {"POWERING_DOWN", "POWER_DOWN"}:
        return Power.GOING
    if node.flags & {"POWERING_UP", "POWER_UP"}:
        return Power.COMING
    return Power.OFF if "POWERED_DOWN" in node.flags else Power.ON


class PowerSwitch:
    """By `scontrol update`. Raises Retryable, Permanent or Stale as every call of Slurm does."""

    def __init__(self, *, conf: str = "", timeout_s: float = 10.0) -> None:
        self._env = {"LC_ALL": "C.UTF-8", **({"SLURM_CONF": conf} if conf else {})}
        self._timeout_s = timeout_s

    def up(self, node: NodeName) -> None:
        self._state(node, "power_up")

    def down(self, node: NodeName) -> None:
        """At once: its jobs are ended."""
        self._state(node, "power_down_force")

    def _state(self, node: NodeName, word: str) -> None:
        argv = ("scontrol", "update", f"nodename={node_list([node])}", f"state={word}")
        try:
            run(argv, timeout_s=self._timeout_s, env=self._env)
        except Failed as failed:
            raise refusal(failed) from failed
