"""Questions to the kernel about the TCP sockets of this machine, in this process's network namespace (sock_diag(7))."""

import socket
import struct
from collections.abc import Iterator, Set

_INET_DIAG = 4
_BY_FAMILY, _ERROR, _DONE = 20, 2, 3
_REQUEST, _DUMP = 0x1, 0x300
_HEADER = struct.Struct("=IHHII")
_ASK = struct.Struct("=BBBBI")
_ADDRESSES = struct.Struct("!HH16s16s")
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""No particular interface, and no cookie."""
_ALL = bytes(_ADDRESSES.size) + _ANY
_ESTABLISHED = 1 << 1
_OWNED = 0xFFF & ~(1 << 6 | 1 << 3)
"""The states of a socket that a process can hold: all but TIME_WAIT and SYN_RECV."""
_UID_AT = _HEADER.size + 4 + _ADDRESSES.size + len(_ANY) + 12
_INODE_AT = _UID_AT + 4
_ATTRIBUTES_AT = _INODE_AT + 4
_ATTRIBUTE = struct.Struct("=HH")
_INFO = 2
"""The attribute that holds a `tcp_info`, and the bit by which it is asked for."""
_CARRIED = struct.Struct("=QQ")
_CARRIED_AT = 120
"""Where a `tcp_info` has the bytes that the other end has acknowledged, and those received."""
MOST_SOCKETS = 65_536
"""The most sockets of this machine that are read."""
_CHUNK = 65_536


def uid_of(source: tuple[bytes, int], target: tuple[bytes, int]) -> int | None:
    """Return the user of the established socket at `source`, connected to `target`; None if there is none.

    Each is a packed address and a port. Raises OSError.
    """
    family = socket.AF_INET if len(source[0]) == 4 else socket.AF_INET6
    about = _ADDRESSES.pack(source[1], target[1], source[0].ljust(16, b"\0"), target[0].ljust(16, b"\0")) + _ANY
    for answer in _answers(family, _ESTABLISHED, about, is_dump=False):
        return int(struct.unpack_from("=I", answer, _UID_AT)[0])
    return None


def tcp_bytes(inodes: Set[int]) -> dict[int, int]:
    """Return how many bytes each of these TCP sockets sent and received; what is closed or elsewhere is left out.

    Raises OSError if the kernel does not tell, or there are more than `MOST_SOCKETS` sockets.
    """
    found: dict[int, int] = {}
    count = 0
    for family in (socket.AF_INET, socket.AF_INET6) if inodes else ():
        for answer in _answers(family, _OWNED, _ALL, is_dump=True):
            count += 1
            if count > MOST_SOCKETS:
                raise OSError(f"more than {MOST_SOCKETS} sockets")
            (inode,) = struct.unpack_from("=I", answer, _INODE_AT)
            if inode in inodes:
                found[inode] = _carried(answer)
    return found


def _carried(answer: bytes) -> int:
    at = _ATTRIBUTES_AT
    while at + _ATTRIBUTE.size <= len(answer):
        size, kind = _ATTRIBUTE.unpack_from(answer, at)
        if size < _ATTRIBUTE.size:
            break
        if kind == _INFO and size >= _ATTRIBUTE.size + _CARRIED_AT + _CARRIED.size:
            return sum(_CARRIED.unpack_from(answer, at + _ATTRIBUTE.size + _CARRIED_AT))
        at += size + 3 & ~3
    raise OSError("this kernel does not tell what a socket carried")


def _answers(family: int, states: int, about: bytes, *, is_dump: bool) -> Iterator[bytes]:
    """Yield what the kernel tells of each socket. Raises OSError."""
    body = _ASK.pack(family, socket.IPPROTO_TCP, _INFO if is_dump else 0, 0, states) + about
    flags = _REQUEST | (_DUMP if is_dump else 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _INET_DIAG) as kernel:
        kernel.settimeout(0.1)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, flags, 1, 0) + body)
        while True:
            for kind, message in _messages(kernel.recv(_CHUNK)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", message, _HEADER.size)[0], "sockets")
                if kind == _BY_FAMILY and len(message) >= _ATTRIBUTES_AT:
                    yield message
            if not is_dump:
                return


def _messages(chunk: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(chunk):
        size, kind, *_ = _HEADER.unpack_from(chunk, at)
        if size < _HEADER.size:
            return
        yield kind, chunk[at : at + size]
        at += size + 3 & ~3
