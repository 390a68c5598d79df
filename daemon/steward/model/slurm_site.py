"""The facts about a Slurm cluster for an installation, read once by `steward init` and `steward config check`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from steward.model.ids import NodeName
from steward.model.node import Node

_HOST = re.compile(r"(?P<name>[^()]+)(?:\((?P<address>[^()]*)\))?")
_USER = re.compile(r"(?P<name>[^()]+)(?:\([0-9]+\))?")
_MUNGE_SOCKET = re.compile(r"(?:^|,)socket=(/[^,]+)")
_LOOPBACK = ("127.", "::1", "localhost")
_HOLD = re.compile(r"^[^#]*\bsteward\S*\.so\b.*\bhold=(?P<seconds>[0-9]{1,6})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSite:
    """A Slurm cluster: `config` from `scontrol show config`; `logins` are the asked login names that exist here."""

    config: Mapping[str, str]
    nodes: Mapping[NodeName, Node]
    partitions: Mapping[str, frozenset[NodeName]]
    plugstack: str = ""
    logins: frozenset[str] = field(default_factory=frozenset)

    @property
    def cluster(self) -> str:
        """Return ClusterName."""
        return self.config.get("ClusterName", "")

    @property
    def slurm_user(self) -> str:
        """Return the login name of SlurmUser; empty if it is not in the configuration."""
        match = _USER.match(self.config.get("SlurmUser", ""))
        return match["name"] if match else ""

    @property
    def controller(self) -> str:
        """Return the first SlurmctldHost, as a name that nodes can resolve; empty if there is none."""
        match = _HOST.match(self.config.get("SlurmctldHost[0]", self.config.get("SlurmctldHost", "")))
        return match["name"] if match else ""

    @property
    def munge_socket(self) -> str:
        """Return the socket of Slurm's munged (AuthInfo); empty if it is the MUNGE library's own."""
        match = _MUNGE_SOCKET.search(self.config.get("AuthInfo", "")) if self.uses_munge else None
        return match[1] if match else ""

    @property
    def uses_munge(self) -> bool:
        """Return whether Slurm itself authenticates by MUNGE."""
        return self.config.get("AuthType", "auth/munge") == "auth/munge"

    @property
    def takes_new_nodes(self) -> bool:
        """Return whether nodes that slurm.conf does not name may register."""
        most = self.config.get("MaxNodeCount", "")
        return most.isdigit() and int(most) > len(self.nodes)

    @property
    def powers_nodes(self) -> bool:
        """Return whether Slurm itself powers nodes up and down."""
        programs = (self.config.get(key, "(null)") for key in ("ResumeProgram", "SuspendProgram"))
        return all(program.startswith("/") for program in programs)

    @property
    def hold_s(self) -> int | None:
        """Return the shim's `hold=` in plugstack.conf; None if it is not set."""
        match = _HOLD.search(self.plugstack)
        return int(match["seconds"]) if match else None

    def far_nodes(self) -> list[NodeName]:
        """Return the nodes on other machines than the controller's."""
        return [
            name
            for name, node in self.nodes.items()
            if not node.address.startswith(_LOOPBACK) and self.controller not in (name, node.address)
        ]
