"""A case: one node's repair from suspicion to return; and what is kept of the past of a piece of hardware."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.health import Advice, Incarnation
from steward.model.ids import CaseId, InstanceId, NodeName
from steward.model.why import Why


class Step(Enum):
    SUSPECT = "suspect"
    DRAIN = "drain"
    RELEASE = "release"
    MEND = "mend"
    LAUNCH = "launch"
    PROVISION = "provision"
    VERIFY = "verify"
    RETURN = "return"
    CLOSED = "closed"
    HELD = "held"


class Trigger(Enum):
    """The reason why the case was opened; it decides how hard the node is taken out."""

    LOST = "lost"
    """Agent gone and a second witness agrees: drain and down at once, nothing runs there any more."""
    FATAL = "fatal"
    """A fatal finding: drain and down at once, jobs on it are dying anyway."""
    DEGRADED = "degraded"
    """Drain, and wait for the jobs to end."""
    ADMIN = "admin"
    """An admin's `Action:Replace` or `Action:Reboot`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """How Slurm showed our mark on the node of a case. Times are Unix seconds.

    `shown` is since when the mark stands there, `gone` since when it does not any more. `under` are the last
    controllers that showed it, each by when it began. `on_disk`: it stood so long that slurmctld has written it.
    `again` is when it was seen there once more after the case had ended with its node back in service.
    """

    shown: float | None = None
    gone: float | None = None
    under: tuple[int, ...] = ()
    on_disk: bool = False
    again: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything remembered of a repair. Times are Unix seconds; None where a step was not reached.

    `old` is the incarnation that was found bad; after a reboot or a replacement a return needs another one. `rung` is
    the one of the ladder that is tried (NONE: the checks alone decide); it only goes up, but for a `gone` machine that
    is heard again before its turn: that one is only checked. `target` is what a light rung
    is about (a unit, a GPU), `hardware` the identity that remedies are counted under.
    `old_slurmd` is Slurm's SlurmdStartTime then: another one proves that a new slurmd registered.
    `launches` counts the instances given up on (part of `token`, the provider's client token), `tries` the refused
    calls for the present one, `refusals` those of them that were not for want of capacity. `command` is an admin's
    reason (`Action:Replace`), or Slurm's own, that stands in place of our mark. `stand_in` is the spare that serves
    in place of a node with a fixed machine. `gone`: not we alone say that the machine is lost (policy/node/gone.py).
    `marking` is how Slurm showed our mark (policy/node/forgotten.py).
    `asked` and `approved`: since when the repair waits for a person's yes, and when it had it (`repair.mode = "ask"`).
    """

    id: CaseId
    node: NodeName
    trigger: Trigger
    check: str
    step: Step
    entered: float
    opened: float
    why: Why
    rung: Advice = Advice.REPLACE
    old: Incarnation | None = None
    old_instance: InstanceId | None = None
    new_instance: InstanceId | None = None
    stand_in: NodeName | None = None
    old_slurmd: float | None = None
    command: str = ""
    target: str = ""
    hardware: str = ""
    gone: bool = False
    launches: int = 0
    tries: int = 0
    refusals: int = 0
    next_try: float = 0.0
    fault_at: float | None = None
    detected: float | None = None
    marked: float | None = None
    marking: Marking = field(default_factory=Marking)
    replaced: float | None = None
    returned: float | None = None
    closed: float | None = None
    asked: float | None = None
    approved: float | None = None
    approved_by: str = ""

    @property
    def token(self) -> str:
        return f"{self.id}-{self.launches}"

    @property
    def is_of_reason(self) -> bool:
        """Return whether Slurm itself took the node out, and checks alone are to tell whether it may serve again."""
        return bool(self.command) and self.trigger is Trigger.DEGRADED and self.rung is Advice.NONE

    @property
    def launch_token(self) -> str:
        """The token of the launch test after the present rung: each rung has its own."""
        return f"{self.token}-{self.rung.value}"

    @property
    def is_stood_in(self) -> bool:
        """A spare serves; the node itself waits for a person."""
        return self.step is Step.HELD and self.stand_in is not None

    @property
    def number(self) -> str:
        """The id's first part: as short, and of no other case."""
        return self.id.split("-")[0]

    @property
    def waits_for_yes(self) -> bool:
        """People were asked to approve the repair, and nobody did yet."""
        return self.step is Step.RELEASE and self.asked is not None and self.approved is None

    @property
    def waits_for_person(self) -> bool:
        """Nothing goes on until a person acts."""
        return self.waits_for_yes or self.step is Step.HELD

    @property
    def is_open(self) -> bool:
        return self.step is not Step.CLOSED


# The history of a piece of hardware: the ladder's budgets and the lemon score rest on it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One rung that was begun. Kept under the identity of the piece it was about: a GPU's UUID, the board's serial,
    else the instance id, else the node's name."""

    at: float
    rung: Advice
    node: NodeName
    instance: InstanceId | None
    case: CaseId
    check: str


class Blow(Enum):
    """A sign of a bad machine where nothing was repaired."""

    NODE_FAIL = "node_fail"
    """The node failed under a job of one node."""
    NODE_FAIL_OF_MANY = "node_fail_of_many"
    """The node failed under a job of several nodes."""
    EXCLUDED = "excluded"
    """A user's job avoids it by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    at: float
    blow: Blow
    node: NodeName
