"""The light rungs of the repair ladder, which the node's own agent carries out: restart a service, reset a GPU."""

import re
from dataclasses import dataclass
from typing import Annotated

from steward.model.bounds import Printable, Token
from steward.model.health import Advice

_UNIT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_@-]{0,99}(\.service)?\Z")
_UUID = re.compile(r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_PCI = re.compile(r"^([0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}):[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(\.[0-7])?\Z")

RESTARTABLE = (
    "chrony",
    "chronyd",
    "munge",
    "nvidia-dcgm",
    "nvidia-fabricmanager",
    "nvidia-persistenced",
    "nscd",
    "rpcbind",
    "slurmd",
    "sssd",
    "systemd-timesyncd",
)
"""The units that an agent may restart by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MendReport:
    """The result of the order with `token` on this boot; `error` is one line of hostile text, empty on success."""

    token: Token
    error: Annotated[str, Printable(400)] = ""
    at: float = 0.0

    @property
    def is_done(self) -> bool:
        """Return whether the repair succeeded."""
        return not self.error


def is_unit(word: str) -> bool:
    """Return whether the word has the form of a systemd service's name."""
    return _UNIT.match(word) is not None


def is_gpu_uuid(word: str) -> bool:
    """Return whether the word has the form of a GPU's UUID."""
    return _UUID.match(word) is not None


def is_gpu(word: str) -> bool:
    """Return whether the word has the form of a GPU's UUID or PCI address."""
    return is_gpu_uuid(word) or _PCI.match(word) is not None


def is_possible_mend(rung: Advice, target: str) -> bool:
    """Return whether an agent could carry out this rung on this target: restart a unit, reset a GPU."""
    return is_unit(target) if rung is Advice.RESTART_SERVICE else rung is Advice.RESET_GPU and is_gpu(target)
