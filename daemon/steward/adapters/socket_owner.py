"""The user of a socket on this machine, as the kernel knows it: of the other end of a connection, or of a listener."""

import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from steward.adapters.sock_diag import uid_of

_PEER = struct.Struct("3i")


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process at the other end of a unix socket, from the kernel."""
    pid, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid


def owner_of(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """Return the uid of the socket at `theirs`, connected to `ours` (each address and port), or None if unknown.

    It is unknown if the socket is not on this machine, or the kernel may not be asked.
    """
    try:
        source, target = ((_plain(_ip(host)).packed, port) for host, port in (theirs, ours))
        return uid_of(source, target)
    except (OSError, ValueError):
        return None


# The users of listening sockets (proc(5)). Any user may listen at a port above 1023 that is free for a moment.

_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def listeners(host: str, port: int) -> frozenset[int]:
    """Return the users who listen at the port of this address, or of all addresses; empty if that is not known."""
    try:
        wanted = _plain(_ip(host))
    except ValueError:
        return frozenset()
    places = (place for table in _TABLES for place in _listening(table))
    return frozenset(uid for at, number, uid in places if number == port and _is_at(at, wanted))


def _ip(host: str) -> _Address:
    return ipaddress.ip_address(host.partition("%")[0])


def _is_at(at: _Address, wanted: _Address) -> bool:
    return at == wanted or at.is_unspecified or wanted.is_unspecified


def _listening(table: str) -> Iterator[tuple[_Address, int, int]]:
    """Yield address, port and uid of each listening socket."""
    try:
        lines = (Path("/proc/net") / table).read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        words = line.split()
        if words[3] == _LISTENS:
            place, _, port = words[1].partition(":")
            yield _address(place), int(port, 16), int(words[7])


def _address(place: str) -> _Address:
    """Return the address that the kernel shows as words of 32 bits in the machine's own order."""
    packed = b"".join(struct.pack("=I", int(place[at : at + 8], 16)) for at in range(0, len(place), 8))
    return _plain(ipaddress.ip_address(packed))


def _plain(address: _Address) -> _Address:
    """Return the address of version 4 that an address of version 6 stands for, if it does."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
