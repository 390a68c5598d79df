"""The light rungs of the ladder, carried out by the node's own agent: a service restarted, a GPU reset."""

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
"""Units that an agent may restart where its settings name no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MendReport:
    """How the order with `token` ended on this boot. `error` is one line of hostile, bounded text; empty: it worked."""

    token: Token
    error: Annotated[str, Printable(400)] = ""
    at: float = 0.0

    @property
    def is_done(self) -> bool:
        return not self.error


def is_unit(word: str) -> bool:
    """Whether it may be the name of a systemd service."""
    return _UNIT.match(word) is not None


def is_gpu_uuid(word: str) -> bool:
    return _UUID.match(word) is not None


def is_gpu(word: str) -> bool:
    """Whether it has the form of a GPU's UUID or PCI address."""
    return is_gpu_uuid(word) or _PCI.match(word) is not None


def fits(rung: Advice, target: str) -> bool:
    """Whether an agent could carry out this rung on this target: a unit restarted, a GPU reset."""
    return is_unit(target) if rung is Advice.RESTART_SERVICE else rung is Advice.RESET_GPU and is_gpu(target)
