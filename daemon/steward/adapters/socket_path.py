"""Sockets of our servers: the place of a unix socket, the length of the queue, the user at the other end.

A socket that a dead process left is removed; one that lives is left alone.
"""

import ipaddress
import os
import socket
import stat
import struct
from asyncio.trsock import TransportSocket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_ANSWER_S = 0.5


def make_free(path: Path, *, rival: str) -> None:
    """Remove a dead socket at `path`.

    Raises FileExistsError if a process answers there (`rival` says which it may be, and what to do), or if the file is
    not a socket.
    """
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise FileExistsError(f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise FileExistsError(f"another {rival}")


@contextmanager
def served_first(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to listen at, and move the socket to `path` afterwards.

    So a client that waits for the name is never refused.
    """
    hidden = path.with_name(f"{path.name}.{os.getpid()}")
    hidden.unlink(missing_ok=True)
    try:
        yield hidden
        hidden.rename(path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


AT_ONCE = 32
"""How many connections are accepted before the loop's other work has its turn. It is given as `backlog`, because
asyncio accepts as many at once as wait, which may be thousands of one user's; `lengthen` then makes the queue
longer."""


def lengthen(sockets: Iterable[socket.socket | TransportSocket], queue: int) -> None:
    """Set how many connections may wait at each listening socket; asyncio has set that to what it accepts at once."""
    for each in sockets:
        with socket.socket(fileno=os.dup(each.fileno())) as same:
            same.listen(queue)


_PEER = struct.Struct("3i")


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process at the other end of a unix socket, from the kernel."""
    pid, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return pid, uid


# Whose the other end of a TCP connection is, where it is on this machine: the kernel knows (sock_diag(7)).

_INET_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ESTABLISHED = 1 << 1
_HEADER = struct.Struct("=IHHII")
_ASK = struct.Struct("=BBBBI")
_ID = struct.Struct("!HH16s16s")
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""Any interface, and no cookie."""
_UID_AT = _HEADER.size + 4 + _ID.size + len(_ANY) + 12


def owner_of(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """Return the uid that made the socket at `theirs`, connected to `ours` (both address and port).

    None: it is not on this machine, or the kernel may not be asked.
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
    source, target = (ipaddress.ip_address(each[0].partition("%")[0]) for each in (theirs, ours))
    family = socket.AF_INET if source.version == 4 else socket.AF_INET6
    asked = _ASK.pack(family, socket.IPPROTO_TCP, 0, 0, _ESTABLISHED)
    about = _ID.pack(theirs[1], ours[1], source.packed.ljust(16, b"\0"), target.packed.ljust(16, b"\0"))
    body = asked + about + _ANY
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _uid(answer: bytes) -> int | None:
    if len(answer) < _UID_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    return int(struct.unpack_from("=I", answer, _UID_AT)[0])
