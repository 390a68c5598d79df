"""The identity of this machine: its instance id and boot id, and the identities of hardware that outlives them."""

import socket
from collections.abc import Callable
from pathlib import Path

from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.text import printable
from steward.ports import Permanent

USUAL_FILES = (
    Path("/var/lib/cloud/data/instance-id"),
    Path("/sys/class/dmi/id/product_uuid"),
    Path("/etc/machine-id"),
)
"""The files with an instance id: first the cloud's (cloud-init), then the firmware's, then the installation's."""
_LIMIT = 128


def node_name(named: str) -> NodeName:
    """Return `named`, or else what `hostname -s` prints."""
    return NodeName(named or socket.gethostname().split(".")[0])


def incarnation(
    instance_id_file: Path | None, boot_id_file: Path, usual: tuple[Path, ...] = USUAL_FILES
) -> Incarnation:
    """Return this machine and its boot. Raises Permanent if one of the two is unknown."""
    candidates = (instance_id_file,) if instance_id_file else usual
    instance = next((word for path in candidates if (word := _word(path))), "")
    boot = _word(boot_id_file)
    if not instance:
        tried = ", ".join(str(path) for path in candidates)
        raise Permanent(f"no instance id in {tried}: write one and name the file in agent.instance_id_file")
    if not boot:
        raise Permanent(f"no boot id in {boot_id_file}: set agent.boot_id_file")
    return Incarnation(instance=InstanceId(instance), boot=BootId(boot))


def _word(path: Path) -> str:
    try:
        return printable(path.read_text(errors="replace").strip(), _LIMIT)
    except OSError:
        return ""


# The pieces of hardware of this node, by names that outlive an instance: its board's serial, its GPUs' UUIDs.

_SERIAL_LIMIT = 48
_NO_SERIAL = frozenset(
    (
        *("", "none", "n/a", "na", "default string", "not specified", "not applicable", "not available", "unknown"),
        *("to be filled by o.e.m.", "system serial number", "base board serial number", "0123456789", "123456789"),
    )
)
"""Placeholders instead of serial numbers: taken as identities, they would make one machine of many."""


class Hardware:
    """The identities of this node's hardware. `gpus` returns the UUIDs of the GPUs seen last."""

    def __init__(self, board_serial_file: Path, gpus: Callable[[], tuple[str, ...]]) -> None:
        self._board = _board(board_serial_file)
        self._gpus = gpus

    def __call__(self) -> tuple[str, ...]:
        return (*self._board, *self._gpus())


def _board(path: Path) -> tuple[str, ...]:
    try:
        serial = printable(path.read_text(errors="replace").strip(), _SERIAL_LIMIT)
    except OSError:
        return ()
    is_real = serial.lower() not in _NO_SERIAL and len(set(serial)) > 2
    return (f"board-{serial}",) if is_real else ()
