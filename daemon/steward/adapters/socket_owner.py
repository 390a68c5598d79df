"""The user of a socket on this machine, as the kernel knows it: of the other end of a connection, or of a listener."""

import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_PEER = struct.Struct("3i")


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process at the other end of a unix socket, from the kernel."""
    pid, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid


# The owner of the other end of a TCP connection on this machine, asked of the kernel (sock_diag(7)).

_INET_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ESTABLISHED = 1 << 1
_HEADER = struct.Struct("=IHHII")
_ASK = struct.Struct("=BBBBI")
_ID = struct.Struct("!HH16s16s")
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""No particular interface, and no cookie."""
_UID_AT = _HEADER.size + 4 + _ID.size + len(_ANY) + 12


def owner_of(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """Return the uid of the socket at `theirs`, connected to `ours` (each address and port), or None if unknown.

    It is unknown if the socket is not on this machine, or the kernel may not be asked.
    """
    try:
        question = _question(theirs, ours)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _INET_DIAG) as kernel:
            kernel.settimeout(0.1)
            kernel.send(question)
            answer = kernel.recv(4096)
    except (OSError, ValueError):
        return None
    return _uid(answer)


def _question(theirs: tuple[str, int], ours: tuple[str, int]) -> bytes:
    source, target = (_plain(ipaddress.ip_address(each[0].partition("%")[0])) for each in (theirs, ours))
    family = socket.AF_INET if source.version == 4 else socket.AF_INET6
    asked = _ASK.pack(family, socket.IPPROTO_TCP, 0, 0, _ESTABLISHED)
    about = _ID.pack(theirs[1], ours[1], source.packed.ljust(16, b"\0"), target.packed.ljust(16, b"\0"))
    body = asked + about + _ANY
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _uid(answer: bytes) -> int | None:
    if len(answer) < _UID_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    return int(struct.unpack_from("=I", answer, _UID_AT)[0])


# The users of listening sockets (proc(5)). Any user may listen at a port above 1023 that is free for a moment.

_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def listeners(host: str, port: int) -> frozenset[int]:
    """Return the users who listen at the port of this address, or of all addresses; empty if that is not known."""
    try:
        wanted = _plain(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return frozenset()
    places = (place for table in _TABLES for place in _listening(table))
    return frozenset(uid for at, number, uid in places if number == port and _is_at(at, wanted))


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
