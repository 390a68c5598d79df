"""The identity of this machine: its instance id and boot id, and the identities of hardware that outlives them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

from steward.adapters.process import run
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.text import printable
from steward.ports import Permanent, Retryable

USUAL_FILES = (
    Path("/var/lib/cloud/data/instance-id"),
    Path("/sys/class/dmi/id/product_uuid"),
    Path("/etc/machine-id"),
)
"""The files with an instance id: first the cloud's (cloud-init), then the firmware's, then the installation's."""
_ID_LIMIT = 128
_ALIASES_S = 5.0


def node_name(named: str, slurm_conf: str = "", host: str = "") -> NodeName:
    """Return `named`, else Slurm's name of the node on this host, else what `hostname -s` prints.

    Slurm's name is SLURMD_NODENAME in our environment, or the NodeName whose NodeHostname is `host` (this host's name),
    long or short. Raises Permanent if slurm.conf has several nodes on this host.
    """
    long = host or socket.gethostname()
    short = long.split(".")[0]
    if given := named or os.environ.get("SLURMD_NODENAME", ""):
        return NodeName(given)
    # the short name first, as slurmd does: on nearly every site one call of scontrol is enough
    for known in (_nodes_on(name, slurm_conf) for name in dict.fromkeys((short, long))):
        if len(known) > 1 and short not in known:
            raise Permanent(f"slurm.conf has several nodes on {long}: set agent.node_name, or start with --node")
        if known:
            return NodeName(short if short in known else known[0])
    return NodeName(short)


def _nodes_on(host: str, slurm_conf: str) -> list[str]:
    """Return the names of the nodes whose NodeHostname is `host`; empty if scontrol fails."""
    env = {"SLURM_CONF": slurm_conf} if slurm_conf else None
    try:
        return run(["scontrol", "show", "aliases", host], timeout_s=_ALIASES_S, env=env).text.split()
    except Retryable:
        return []


def incarnation(
    instance_id_file: Path | None, boot_id_file: Path, usual: tuple[Path, ...] = USUAL_FILES
) -> Incarnation:
    """Return this machine and its boot. Raises Permanent if one of the two is unknown."""
    candidates = (instance_id_file,) if instance_id_file else usual
    instance = next((word for path in candidates if (word := _id_in(path))), "")
    boot = _id_in(boot_id_file)
    if not instance:
        tried = ", ".join(str(path) for path in candidates)
        raise Permanent(f"no instance id in {tried}: write one and name the file in agent.instance_id_file")
    if not boot:
        raise Permanent(f"no boot id in {boot_id_file}: set agent.boot_id_file")
    return Incarnation(instance=InstanceId(instance), boot=BootId(boot))


def _id_in(path: Path) -> str:
    try:
        return printable(path.read_text(errors="replace").strip(), _ID_LIMIT)
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
