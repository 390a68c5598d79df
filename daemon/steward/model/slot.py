"""The life of a slot: from the request for an instance to a node in service, and to its end."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.group import Version
from steward.model.ids import InstanceId, NodeName, UnixTime
from steward.model.why import Why


class SlotStep(Enum):
    """The step of a slot's life."""

    WAITING = "waiting"
    """No instance; requested when `next_try` has come and it is the slot's turn."""
    LAUNCH = "launch"
    """The provider was asked with `token`."""
    PROVISION = "provision"
    """The instance exists; its agent is awaited."""
    SETUP = "setup"
    """The lifecycle scripts run."""
    VERIFY = "verify"
    """Fresh checks and Slurm's registration are awaited; the node is drained under our mark."""
    RETURN = "return"
    """Handed to Slurm, which must show the node in service."""
    SERVING = "serving"
    """In service (or under repair by a case); counts as Current while its node is sound."""
    DRAIN = "drain"
    """Leaving, or renewed: takes no new job, waits for its jobs up to the deadline."""
    BACKUP = "backup"
    """The site's backup command runs; its failure stops the deletion."""
    END = "end"
    """The instance is being ended."""


COMING = (
    SlotStep.WAITING,
    SlotStep.LAUNCH,
    SlotStep.PROVISION,
    SlotStep.SETUP,
    SlotStep.VERIFY,
    SlotStep.RETURN,
)
"""The steps on the way into service, in order."""


class Purpose(Enum):
    """The purpose of the steps DRAIN, BACKUP and END."""

    STAY = "stay"
    LEAVE = "leave"
    """The slot is removed."""
    RENEW = "renew"
    """Another instance takes its place (software update, or a replacement requested by a person)."""


class Hitch(Enum):
    """Why the last try failed; each kind has its own back-off."""

    NONE = "none"
    CAPACITY = "capacity"
    QUOTA = "quota"
    BOOTSTRAP = "bootstrap"
    SCRIPT = "script"
    CHECKS = "checks"
    REFUSED = "refused"
    """The provider refuses the request itself, for example an unknown image."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """The memory of a slot. Times are Unix seconds.

    `logical` is its logical id (API: NodeLogicalId), `token` the provider's client token of the current try. `tries`
    counts failed tries in a row for the current instance, `launches` all instances given up. `has_served` is False for
    a slot that was never in service (rollback ends those first).
    """

    node: NodeName
    group: str
    logical: str
    step: SlotStep
    entered: UnixTime
    created: UnixTime
    why: Why
    purpose: Purpose = Purpose.STAY
    instance: InstanceId | None = None
    version: Version = field(default_factory=Version)
    """The version from which its current instance was made."""
    launches: int = 0
    tries: int = 0
    hitch: Hitch = Hitch.NONE
    trouble: str = ""
    """The last failure in words; HyperPod shows it as the node's message."""
    next_try: UnixTime = 0.0
    deadline: UnixTime | None = None
    """In DRAIN: the time until which its jobs may run; None: as long as they like."""
    launched: UnixTime | None = None
    old_slurmd: float | None = None
    """Slurm's SlurmdStartTime of the node at the launch: another value shows that the new machine has registered."""
    served: UnixTime | None = None
    updated: UnixTime | None = None
    has_served: bool = False
    missing: UnixTime | None = None
    """The time since which the provider does not list its instance any more."""
    saved: bool = False
    """Whether the slot's node was backed up and is to be restored on its next instance."""
    over: UnixTime | None = None
    """The time since which only Slurm's record of its dynamic node is left."""

    @property
    def token(self) -> str:
        """Return the provider's client token of the current try."""
        return f"{self.logical}-{self.launches}"

    @property
    def serial(self) -> int:
        """Return a number that grows with each slot made: it orders slots made at the same time."""
        number = self.logical.rpartition("-")[2]
        return int(number) if number.isdigit() else 0

    @property
    def is_leaving(self) -> bool:
        """Return whether the slot is being removed."""
        return self.purpose is Purpose.LEAVE

    @property
    def is_coming(self) -> bool:
        """Return whether the slot is on its way into service."""
        return self.step in COMING


class SlotFact(Enum):
    """A fact that the picture shows about a slot. The value is the sentence in the diagram and in events."""

    UNWANTED = "it must leave or be replaced"
    HOSTED = "it is the head's own machine"
    SERVES = "a machine is in service under its name already"
    FOUND = "a machine runs under its name already"
    DUE = "its turn has come, and Slurm starts nothing on its node"
    LAUNCHED = "the instance exists"
    REFUSED = "the provider refused"
    CONNECTED = "the agent of its instance is connected"
    PREPARED = "its lifecycle scripts succeeded, or there are none"
    STUMBLED = "the scripts failed and are tried again"
    FAILED = "the scripts failed too often on this instance"
    SOUND = "all checks passed and slurmd registered"
    UNFIT = "its deep check failed, and Slurm starts nothing on its node"
    BACK = "Slurm starts jobs on its node"
    TAKEN = "its node is out of service, but not by Steward"
    LOST = "its instance is gone"
    KEPT = "it stays after all"
    EMPTY = "no job is on its node"
    HURRIED = "the time to wait for its jobs is over"
    SAVED = "it was backed up, or need not be"
    UNSAVED = "the backup failed: the instance stays until a person asks again"
    GONE = "its instance is gone, and so is the slot"
    VACATED = "its instance is gone, and a new one is needed"
    LATE = "the step's deadline passed"
