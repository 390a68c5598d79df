"""Steward's mark on things in Slurm: `steward:<check>:<action>:<id>`. Steward undoes only marked changes.

Slurm may append `" : Not responding"` to a reason, so only its first `" : "` token counts (reference: slurmctld's
`set_node_reason`).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_MARK = re.compile(r"^steward:(?P<check>[a-z0-9_.-]{1,40}):(?P<action>[a-z_]{1,20}):(?P<id>[A-Za-z0-9-]{1,40})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The check, action and case (or other id) for which Steward took a thing out of service."""

    check: str
    action: str
    id: str

    def __str__(self) -> str:
        return f"steward:{self.check}:{self.action}:{self.id}"

    @property
    def tells_of_leaving(self) -> bool:
        """Return whether the node's API group does not want the node any more: its machine was ended on purpose."""
        return (self.check, self.action) == LEAVE

    @property
    def is_slots(self) -> bool:
        """Return whether the mark belongs to a slot of an API group, whose node lacks a machine on purpose."""
        return (self.check, self.action) in (HOLD, LEAVE, RENEW)


HOLD, LEAVE, RENEW = ("setup", "hold"), ("scale", "leave"), ("update", "renew")
"""Check and action of marks on nodes of API groups: not in service yet, leaving, being renewed."""
SPARE = Mark(check="spare", action="hold", id="pool")
"""The mark of every waiting spare: one for all, so that one command drains them all."""


_REBOOT = re.compile(r"(?:Reboot ASAP|reboot requested) : reboot issued(?: : (?P<last>reboot timed out))?(?: : .*)?\Z")
"""The reason after a `scontrol reboot` without one: slurmctld appends a part at each stage."""


def is_slurms_reboot(reason: str) -> bool:
    """Return whether the reason is Slurm's own text about a reboot, which carries the login of who ordered it."""
    return _REBOOT.match(reason) is not None


def first_token(reason: str) -> str:
    """Return the part of a Slurm reason that its author wrote, without slurmctld's additions.

    For a reboot that timed out, return the end of slurmctld's own text (`reboot timed out`).
    """
    match = _REBOOT.match(reason)
    return (match["last"] if match else None) or reason.split(" : ", 1)[0].strip()


@lru_cache(maxsize=4096)
def parse_mark(reason: str) -> Mark | None:
    """Return Steward's mark in a node's reason; None if the reason is not Steward's."""
    match = _MARK.match(first_token(reason))
    return Mark(check=match["check"], action=match["action"], id=match["id"]) if match else None
