"""Which sockets processes hold, as their open files name them: what a rank's own network traffic is told by."""

import os
import re
from collections.abc import Iterable
from itertools import islice

from steward.adapters.proc import ProcessKey

_SOCKET = re.compile(r"socket:\[([0-9]+)\]")
_KIND = "system.sockprotoname"
"""The extended attribute in which the kernel names a socket's protocol."""
_COUNTED, _LOCAL = (b"TCP\0", b"TCPv6\0"), (b"UNIX", b"NETLINK")
MOST_FILES = 8192
"""The most open files that are looked at, of all processes that are asked for together."""


class _NotKnown(Exception):
    """What the sockets of a process carry cannot be told."""


def tcp_sockets(keys: Iterable[ProcessKey], proc_dir: str = "/proc") -> dict[ProcessKey, frozenset[int] | None]:
    """Return the inodes of each process's TCP sockets; None if it may have others that carry traffic.

    That is so for one in another network namespace, with sockets of another protocol, or with more than `MOST_FILES`
    open files, and for one that is gone. Following the links of a user's process may hang: call this in a thread for
    the processes of one user.
    """
    left = MOST_FILES
    found: dict[ProcessKey, frozenset[int] | None] = dict.fromkeys(keys)
    for key in found:
        place = f"{proc_dir}/{key.pid}"
        try:
            if os.readlink(f"{place}/ns/net") != os.readlink(f"{proc_dir}/self/ns/net"):
                continue
            with os.scandir(f"{place}/fd") as files:
                paths = [file.path for file in islice(files, left + 1)]
            left -= len(paths)
            if left < 0:
                break
            sockets = [_socket_at(path) for path in paths]
        except (OSError, _NotKnown):
            continue
        found[key] = frozenset(inode for inode in sockets if inode is not None)
    return found


def _socket_at(path: str) -> int | None:
    """Return the inode of a TCP socket; None if the file is none, or carries nothing. Raises OSError, _NotKnown."""
    try:
        socket = _SOCKET.fullmatch(os.readlink(path))
        kind = os.getxattr(path, _KIND) if socket is not None else b""
    except FileNotFoundError:  # it was closed meanwhile
        return None
    if socket is None or kind.startswith(_LOCAL):
        return None
    if kind not in _COUNTED:
        raise _NotKnown
    return int(socket[1])
