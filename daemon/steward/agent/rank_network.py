"""What ranks move through the network, told from what others on the machine move: by the sockets of their processes.

The sockets are asked for only where it matters: of ranks that use nothing else, while the machine's network is busy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steward.adapters.proc import ProcessKey
from steward.model.job_sight import Doing

QUIET_BYTES_PER_S = 100_000.0
"""The bytes up to which a rank, or the network of its node, does nothing."""

FIRST_LOOK_S, LAST_TRY_S = 30.0, 150.0
"""Between these times without other use the sockets are looked at even if the network is at rest, until they are seen.

So a wait that has begun in peace does not begin anew when others first use the network.
"""

Carried = Mapping[int, int]
"""TCP sockets by their inodes, each with the bytes that it carried."""
Sockets = Mapping[ProcessKey, Carried | None]
"""The TCP sockets of processes; None: what they carried is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTraffic:
    """What the whole machine moved between two looks.

    `is_busy`: through the kernel, where sockets tell whose it is. `is_unsure`: past it, or on GPUs of processes that
    are not known.
    """

    at: float
    is_busy: bool
    is_unsure: bool
    sockets: Sockets


def is_busy(before: tuple[int, float], now: tuple[int, float]) -> bool:
    """Return whether more flowed than a rank at rest may use, of two counts of bytes, each with its time (s)."""
    return now[1] > before[1] and now[0] - before[0] > QUIET_BYTES_PER_S * (now[1] - before[1])


@dataclass(slots=True, kw_only=True)
class RankNetwork:
    """What a rank carried, since it uses nothing else."""

    idle_since: float | None = None
    """The first look by which it used nothing else; None: it does."""
    seen: Carried | None = None
    at: float = 0.0
    """When `seen` was seen."""

    def forget(self) -> None:
        """Note that it used something else, or may have."""
        self.idle_since = self.seen = None

    def lacks_first_look(self, at: float) -> bool:
        """Return whether it has used nothing else for a while, and its sockets were not seen; not for ever."""
        idle_s = 0.0 if self.idle_since is None else at - self.idle_since
        return self.seen is None and FIRST_LOOK_S <= idle_s < LAST_TRY_S

    def note(self, alive: Iterable[ProcessKey], machine: MachineTraffic) -> Doing:
        """Take a look by which the rank's processes used nothing else; return what it does by its network."""
        self.idle_since = machine.at if self.idle_since is None else self.idle_since
        now, before, seconds = _together(alive, machine.sockets), self.seen, machine.at - self.at
        if now is not None:
            self.seen, self.at = now, machine.at
        if machine.is_unsure:
            return Doing.UNKNOWN
        if not machine.is_busy:
            return Doing.WAITS
        if now is None or before is None:
            return Doing.UNKNOWN
        # what flowed through a socket that came and went is not known
        flow = sum(max(count - before.get(inode, 0), 0) for inode, count in now.items())
        return Doing.WORKS if now.keys() != before.keys() or flow > QUIET_BYTES_PER_S * seconds else Doing.WAITS


def _together(processes: Iterable[ProcessKey], sockets: Sockets) -> Carried | None:
    """Return the sockets of all these processes, some of which may be the same; None if any are not known."""
    found: dict[int, int] = {}
    for key in processes:
        if (its := sockets.get(key)) is None:
            return None
        found |= its
    return found
