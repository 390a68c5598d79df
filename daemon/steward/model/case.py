"""A case: one node's repair from suspicion to return, with the remedies tried on its hardware."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.health import Advice, Incarnation
from steward.model.ids import CaseId, InstanceId, NodeName, UnixTime
from steward.model.why import Why


class CaseStep(Enum):
    """The step of a repair."""

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
    """The reason why the case was opened, which decides whether the node's jobs may finish."""

    LOST = "lost"
    """The agent is gone and a second witness confirms it: drain and down at once, because no job runs there any
    more."""
    FATAL = "fatal"
    """A fatal finding: drain and down at once, because the node's jobs fail anyway."""
    DEGRADED = "degraded"
    """A degraded finding: drain, and wait for the jobs to end."""
    ADMIN = "admin"
    """An admin's `Action:Replace` or `Action:Reboot`."""

    @property
    def ends_jobs(self) -> bool:
        """Whether the node is set DOWN at once; else it is drained, and the repair waits for its jobs."""
        return self in (Trigger.LOST, Trigger.FATAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """The history of Steward's mark on the node of a case, as Slurm showed it. Times are Unix seconds.

    `shown` is since when the mark is there, `gone` since when it is not any more. `controllers` holds the last ones
    that showed it, each by its start time. `on_disk`: the mark was there so long that slurmctld has saved it.
    `reappeared` is when it was seen again after the case had ended with its node back in service.
    """

    shown: UnixTime | None = None
    gone: UnixTime | None = None
    controllers: tuple[int, ...] = ()
    on_disk: bool = False
    reappeared: UnixTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The memory of a repair. Times are Unix seconds; None where a step was not reached.

    `old` is the incarnation that was found bad; after a reboot or a replacement the node returns only with another one.
    `rung` is the current rung of the ladder (NONE: the checks alone decide); it only goes up, except that a `gone`
    machine that is heard again before its turn is only checked. `target` is the unit or GPU of a light rung, `hardware`
    the identity under which remedies are counted. `old_slurmd` is Slurm's SlurmdStartTime at the time: another value
    proves that a new slurmd registered.

    `launches` counts the instances given up (part of `token`, the provider's client token), `tries` the refused calls
    for the current one, `refusals` those of them with a reason other than capacity. `command` is an admin's reason
    (`Action:Replace`), or Slurm's own, in place of Steward's mark. `stand_in` is the spare that serves in place of a
    node with a fixed machine. `gone`: a second source confirms that the machine is lost (policy/facts/gone.py).
    `marking` is the history of the mark in Slurm (policy/facts/forgotten.py). `asked` and `approved`: when the repair
    began to wait for a person's approval, and when it got it (`repair.mode = "ask"`). `users` may have brought the
    fault about, each by jobs of which the last began there at this time; `may_be_users` says why one of them alone may
    have, and is empty if none can (policy/facts/users_faults.py).
    """

    id: CaseId
    node: NodeName
    trigger: Trigger
    check: str
    step: CaseStep
    entered: UnixTime
    opened: UnixTime
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
    next_try: UnixTime = 0.0
    fault_at: UnixTime | None = None
    detected: UnixTime | None = None
    marked: UnixTime | None = None
    marking: Marking = field(default_factory=Marking)
    replaced: UnixTime | None = None
    returned: UnixTime | None = None
    closed: UnixTime | None = None
    asked: UnixTime | None = None
    approved: UnixTime | None = None
    approved_by: str = ""
    users: Mapping[int, UnixTime] = field(default_factory=lambda: MappingProxyType({}))
    may_be_users: str = ""

    @property
    def token(self) -> str:
        """Return the provider's client token of the current instance."""
        return f"{self.id}-{self.launches}"

    @property
    def is_of_reason(self) -> bool:
        """Return whether Slurm itself took the node out, so that checks alone decide whether it may serve again."""
        return bool(self.command) and self.trigger is Trigger.DEGRADED and self.rung is Advice.NONE

    @property
    def is_for_users(self) -> bool:
        """Return whether this repair is for what one user's jobs may have brought about; never a replacement."""
        return bool(self.may_be_users) and self.rung is not Advice.REPLACE

    @property
    def is_users_drain(self) -> bool:
        """Return whether this repair is so, and Slurm itself had taken the node out."""
        return self.is_for_users and bool(self.command)

    @property
    def launch_token(self) -> str:
        """Return the token of the launch test after the current rung: each rung has its own."""
        return f"{self.token}-{self.rung.value}"

    @property
    def is_stood_in(self) -> bool:
        """Return whether a spare serves while the node itself waits for a person."""
        return self.step is CaseStep.HELD and self.stand_in is not None

    @property
    def number(self) -> str:
        """Return the short, unique first part of the case's id."""
        return self.id.split("-")[0]

    @property
    def waits_for_yes(self) -> bool:
        """Return whether the repair still waits for a person's approval."""
        return self.step is CaseStep.RELEASE and self.asked is not None and self.approved is None

    @property
    def waits_for_person(self) -> bool:
        """Return whether the repair waits until a person acts."""
        return self.waits_for_yes or self.step is CaseStep.HELD

    @property
    def is_open(self) -> bool:
        """Return whether the case is not closed."""
        return self.step is not CaseStep.CLOSED


_ID = re.compile(r"c[0-9]{1,12}-([0-9a-f]{1,12})")


def new_case_id(number: int, at: float) -> CaseId:
    """Return the id of a case that is opened at this time (Unix s); a store that begins anew counts from 1 again."""
    return CaseId(f"c{number}-{int(at):x}")


def time_in_case_id(id: str) -> float | None:
    """Return when the case with this id was opened (Unix s); None if this is no id of a case."""
    found = _ID.fullmatch(id)
    return None if found is None else float(int(found[1], 16))


# The history of a piece of hardware, for the ladder's budgets and the lemon score.


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One rung that was begun, kept under the identity of the repaired hardware.

    The identity is a GPU's UUID, the board's serial, else the instance id, else the node's name. `for_users`: it was
    for what one user's jobs may have brought about, and counts against no hardware.
    """

    at: UnixTime
    rung: Advice
    node: NodeName
    instance: InstanceId | None
    case: CaseId
    check: str
    for_users: bool = False


class Blow(Enum):
    """A sign of a bad machine without a repair."""

    NODE_FAIL = "node_fail"
    """The node failed under a job of one node."""
    NODE_FAIL_OF_MANY = "node_fail_of_many"
    """The node failed under a job of several nodes."""
    EXCLUDED = "excluded"
    """A user's job excludes the node by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """One such sign at a node, and its time (Unix s)."""

    at: UnixTime
    blow: Blow
    node: NodeName
