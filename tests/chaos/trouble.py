"""The faults that are active, and where the head is to be killed. `bites` counts how often each was felt."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from steward.ports import Retryable

HANGS_S = 10.0
"""How long a command that hangs is waited for."""


class Killed(BaseException):
    """kill -9 of stewardd: nothing catches it."""


class Command(Enum):
    """What is wrong with every `scontrol`."""

    FINE = "fine"
    HANGS = "hangs"
    """Until it is given up; every second one had done its work."""
    GARBAGE = "garbage"
    """What it prints cannot be read. What it was to change is changed."""
    FAILS = "fails"
    """Non-zero at once, nothing is done."""


class Controller(Enum):
    FINE = "fine"
    DEAD = "dead"
    HUNG = "hung"


class Point(Enum):
    """Where stewardd is killed."""

    BEFORE_WRITE = "before a write"
    AFTER_WRITE = "after a write"
    BEFORE_ACT = "before an act"
    AFTER_ACT = "after an act"


@dataclass(slots=True, kw_only=True)
class Trouble:
    command: Command = Command.FINE
    controller: Controller = Controller.FINE
    provider_late: bool = False
    """The provider does what it is asked and the answer does not come back in time."""
    munge_down: bool = False
    kill_at: Point | None = None
    kills: int = 0
    """How many kills are left at `kill_at`."""
    dies: Callable[[], bool] | None = None
    """Asked there, each time, whether it is killed now."""
    stops: Callable[[], None] | None = None
    """What goes on while the head is stopped there, in place of a kill; then it is woken."""
    bites: int = 0
    commands: int = 0

    def bite(self) -> None:
        self.bites += 1

    def point(self, point: Point) -> None:
        """Raises Killed when it is to be here."""
        if self.kills and point is self.kill_at:
            if self.dies is not None and not self.dies():
                return
            self.kills -= 1
            self.bite()
            if self.stops is None:
                raise Killed
            self.stops()
            if point is Point.BEFORE_ACT:
                raise Killed  # by its timer: it asked for its permit before it was stopped

    def refuse_to_tell(self) -> None:
        """A message to an agent needs a credential."""
        if self.munge_down:
            self.bite()
            raise Retryable("munged does not answer")
