"""Our mark on things in Slurm: `steward:<check>:<action>:<id>`; we undo only what carries it.

Slurm may append `" : Not responding"` to a reason, so only its first `" : "` token counts (reference: slurmctld's
`set_node_reason`).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_MARK = re.compile(r"^steward:(?P<check>[a-z0-9_.-]{1,40}):(?P<action>[a-z_]{1,20}):(?P<id>[A-Za-z0-9-]{1,40})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Who took a thing out of service, why, and for which case."""

    check: str
    action: str
    id: str

    def __str__(self) -> str:
        return f"steward:{self.check}:{self.action}:{self.id}"

    @property
    def tells_of_leaving(self) -> bool:
        """Whether the node's group of the API does not want it (any more): its machine was ended on purpose."""
        return (self.check, self.action) == LEAVE

    @property
    def is_slots(self) -> bool:
        """Made for the slot of an API group: without one the node has no machine, on purpose."""
        return (self.check, self.action) in (HOLD, LEAVE, RENEW)


HOLD, LEAVE, RENEW = ("setup", "hold"), ("scale", "leave"), ("update", "renew")
"""Check and action of marks on nodes of API groups: not in service yet, leaving, to be made anew."""
SPARE = Mark(check="spare", action="hold", id="pool")
"""On every spare that waits: one mark for all, so that one command holds them all."""


def first_token(reason: str) -> str:
    """The part of a Slurm reason that its author wrote, without what slurmctld appended."""
    return reason.split(" : ", 1)[0].strip()


@lru_cache(maxsize=4096)
def parse_mark(reason: str) -> Mark | None:
    """Our mark in a node's reason, or None when somebody else wrote it."""
    match = _MARK.match(first_token(reason))
    return Mark(check=match["check"], action=match["action"], id=match["id"]) if match else None
