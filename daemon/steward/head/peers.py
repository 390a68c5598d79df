"""This head among the heads that `agent.head` names, and its lead in their shared database."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steward.model.settings import split_host_port
from steward.ports import Permanent

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class AmongHeads:
    """The name of this head, as agents address it, and the names of the other heads."""

    name: str
    peers: tuple[str, ...] = ()


def place_of(entries: Sequence[str], listen: str) -> AmongHeads:
    """Return the place of the head with this `head.listen` among the entries of `agent.head`.

    Raises Permanent if there are several heads and this host is none of them.
    """
    port = split_host_port(listen)[1]
    ours = [entry for entry in entries if _is_here(entry, port)]
    if ours:
        return AmongHeads(name=ours[0], peers=tuple(entry for entry in entries if entry not in ours))
    if len(entries) > 1:
        said = ", ".join(entries)
        remedy = f"add this one as agents reach it, with the port of head.listen ({port})"
        raise Permanent(f"agent.head = {said}: none of these heads is on this host; {remedy}")
    return AmongHeads(name=f"{socket.gethostname()}:{port}")


def place_in_lease(state_dir: Path) -> str:
    """Return what tells this host, since its boot, and this state_dir from all others."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot} {state_dir}"


def _is_here(entry: str, port: int) -> bool:
    """Return whether an address for agents is this head's: its port, and an address of this host."""
    host, theirs = split_host_port(entry)
    if theirs != port:
        return False
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError:
        return host == socket.gethostname()
    return any(_is_ours(family, address) for family, _, _, _, address in found)


def _is_ours(family: int, address: object) -> bool:
    """Return whether the address belongs to this host: only then can a socket be bound to it."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(address)  # type: ignore[arg-type]
        except OSError:
            return False
    return True
