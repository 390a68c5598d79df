"""The user at the other end of a connection on this machine, as the kernel knows it."""

import ipaddress
import socket
import struct

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
    source, target = (_address(each[0]) for each in (theirs, ours))
    family = socket.AF_INET if source.version == 4 else socket.AF_INET6
    asked = _ASK.pack(family, socket.IPPROTO_TCP, 0, 0, _ESTABLISHED)
    about = _ID.pack(theirs[1], ours[1], source.packed.ljust(16, b"\0"), target.packed.ljust(16, b"\0"))
    body = asked + about + _ANY
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address without its zone; IPv4 as such, also if a socket of IPv6 shows it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _uid(answer: bytes) -> int | None:
    if len(answer) < _UID_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    return int(struct.unpack_from("=I", answer, _UID_AT)[0])
