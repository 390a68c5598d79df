"""A slot's life: from the wish for an instance to a node in service, and out again."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.group import Version
from steward.model.ids import InstanceId, NodeName
from steward.model.why import Why


class SlotStep(Enum):
    WAITING = "waiting"
    """No instance; asked for when `next_try` has come and it is its turn."""
    LAUNCH = "launch"
    """The provider was asked with `token`."""
    PROVISION = "provision"
    """The instance exists; its agent is awaited."""
    SETUP = "setup"
    """The lifecycle scripts run."""
    VERIFY = "verify"
    """Fresh checks and Slurm's registration are awaited; the node is drained under our mark."""
    RETURN = "return"
    """Given to Slurm; it must show the node in service."""
    SERVING = "serving"
    """In service (or under repair by a case): it counts as Current while its node is sound."""
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
"""On the way into service, in the order in which they come."""


class Purpose(Enum):
    """The purpose of the steps DRAIN, BACKUP and END."""

    STAY = "stay"
    LEAVE = "leave"
    """The slot goes."""
    RENEW = "renew"
    """Another instance takes its place (software update, or a replacement that a person asked for)."""


class Hitch(Enum):
    """Why the last try failed; each kind has its own back-off."""

    NONE = "none"
    CAPACITY = "capacity"
    QUOTA = "quota"
    BOOTSTRAP = "bootstrap"
    SCRIPT = "script"
    CHECKS = "checks"
    REFUSED = "refused"
    """The provider will not make it as asked: an unknown image, say."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """Everything remembered of a slot. Times are Unix seconds.

    `logical` is its logical id (API: NodeLogicalId), `token` the provider's client token of the present try.
    `tries` counts failed tries in a row for the present instance wish, `launches` instances given up on, ever.
    `has_served` tells a slot that came back from one that never was in service (rollback ends the latter first).
    """

    node: NodeName
    group: str
    logical: str
    step: SlotStep
    entered: float
    created: float
    why: Why
    purpose: Purpose = Purpose.STAY
    instance: InstanceId | None = None
    version: Version = field(default_factory=Version)
    """The version that its present instance was made from."""
    launches: int = 0
    tries: int = 0
    hitch: Hitch = Hitch.NONE
    trouble: str = ""
    """The last failure in words: what HyperPod shows as the node's message."""
    next_try: float = 0.0
    deadline: float | None = None
    """While DRAIN: when its jobs are not waited for any longer; None: as long as they run."""
    launched: float | None = None
    served: float | None = None
    updated: float | None = None
    has_served: bool = False
    missing: float | None = None
    """Since when its instance is not listed any more."""
    saved: bool = False
    """The slot's node was backed up, and is to be restored on the instance that serves next."""
    over: float | None = None
    """Since when nothing is left of it but Slurm's record of its dynamic node."""

    @property
    def token(self) -> str:
        return f"{self.logical}-{self.launches}"

    @property
    def serial(self) -> int:
        """Grows with each slot made: of two made at the same time the newer has the larger one."""
        number = self.logical.rpartition("-")[2]
        return int(number) if number.isdigit() else 0

    @property
    def is_leaving(self) -> bool:
        return self.purpose is Purpose.LEAVE

    @property
    def is_coming(self) -> bool:
        """On its way into service."""
        return self.step in COMING
