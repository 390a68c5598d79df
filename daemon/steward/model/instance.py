"""The machines behind nodes, as a provider lists them."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import InstanceId, NodeName

SPARES = "static.spares"
"""The group of all spare nodes; no group of the settings can have this name."""


class InstanceState(Enum):
    """The state of an instance, as its provider reports it."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    GONE = "gone"
    UNKNOWN = "unknown"

    @property
    def is_dead(self) -> bool:
        """Return whether the instance is off and will not start by itself."""
        return self in (InstanceState.STOPPED, InstanceState.GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One machine. `token` is the client token of its launch; `launched` is Unix seconds.

    `instead_of` is the broken node for which a spare stands in.
    """

    id: InstanceId
    node: NodeName
    state: InstanceState
    token: str = ""
    launched: float = 0.0
    address: str = ""
    instead_of: NodeName | None = None
    type: str = ""
    """The machine type, if the provider has several."""
    interrupted: str = ""
    """Why the provider will end it soon (a spot interruption); empty if it will not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place in a group that keeps its node name while instances change.

    `fixed`: its machine is the only one that ever has the name; a spare node stands in when it is broken. `reboots`:
    its provider can reboot it. `instead_of` is the broken node for which a spare is requested.
    `types` are acceptable machine types in order of preference (empty: the provider's own choice); `image` and
    `release` what it is made from (empty: the provider's default); `features` are its node's in Slurm; `role` is the
    API's word (`Compute`, `Login`, `Controller`).
    """

    node: NodeName
    group: str
    fixed: bool = False
    reboots: bool = True
    instead_of: NodeName | None = None
    types: tuple[str, ...] = ()
    image: str = ""
    release: str = ""
    features: frozenset[str] = frozenset()
    role: str = "Compute"
