"""What the sockets of processes carried, by real connections of this process and of a child."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from steward.adapters import proc
from steward.adapters.node.process_sockets import MOST_FILES, tcp_sockets
from steward.adapters.proc import ProcessKey
from steward.adapters.sock_diag import tcp_bytes
from tests.fakes.until import until

HOLDS = """
import socket, sys, time
mine = [socket.create_connection((sys.argv[1], int(sys.argv[2])))] if sys.argv[2] != "0" else []
mine += [socket.socket(socket.AF_INET, getattr(socket, kind)) for kind in sys.argv[3:]]
a, b = socket.socketpair()
print("ready", flush=True)
try:
    while sys.argv[2] != "0" and mine[0].recv(1 << 20):
        pass
except ConnectionError:
    print("cut", flush=True)
time.sleep(600)
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def key_of(pid: int) -> ProcessKey:
    seen = proc.look(pid)
    assert seen is not None
    return seen.process


def a_child(stack: ExitStack, *command: str) -> tuple[ProcessKey, IO[bytes]]:
    """A process that has said that it is ready, and what else it says."""
    child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
    stack.callback(child.kill)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return key_of(child.pid), child.stdout


def a_holder(stack: ExitStack, host: str, port: int, *kinds: str) -> tuple[ProcessKey, IO[bytes]]:
    return a_child(stack, sys.executable, "-c", HOLDS, host, str(port), *kinds)


def carried(key: ProcessKey) -> dict[int, int]:
    inodes = tcp_sockets([key])[key]
    assert inodes is not None
    return tcp_bytes(inodes)


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_what_a_process_receives_is_its_own(stack: ExitStack, family: socket.AddressFamily, host: str) -> None:
    listener = stack.enter_context(socket.create_server((host, 0), family=family))
    (key, _), (idle, _) = (a_holder(stack, host, listener.getsockname()[1]) for _ in range(2))
    served, other = (stack.enter_context(listener.accept()[0]) for _ in range(2))
    before, at_rest = carried(key), carried(idle)
    (inode,) = before
    served.sendall(bytes(3_000_000))
    until("its bytes are counted", lambda: carried(key)[inode] - before[inode] >= 3_000_000)
    assert carried(key)[inode] - before[inode] < 3_001_000
    assert carried(idle) == at_rest
    ours = carried(key_of(os.getpid()))  # both ends count, and one that listens carries nothing
    assert ours[os.fstat(served.fileno()).st_ino] >= 3_000_000
    assert ours[os.fstat(other.fileno()).st_ino] < 1000
    assert ours[os.fstat(listener.fileno()).st_ino] == 0


def test_a_connection_that_the_other_end_has_cut_carries_nothing_more(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    key, says = a_holder(stack, "127.0.0.1", listener.getsockname()[1])
    served = listener.accept()[0]
    held = tcp_sockets([key])[key]
    served.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
    served.close()
    assert says.readline() == b"cut\n"
    assert tcp_sockets([key]) == {key: held}  # its descriptor is still there
    assert carried(key) == {}


def test_of_a_process_with_sockets_that_are_not_counted_nothing_is_known(stack: ExitStack) -> None:
    key, _ = a_holder(stack, "127.0.0.1", 0, "SOCK_STREAM")
    assert tcp_sockets([key])[key] is not None
    key, _ = a_holder(stack, "127.0.0.1", 0, "SOCK_STREAM", "SOCK_DGRAM")
    assert tcp_sockets([key]) == {key: None}


def test_of_a_process_in_another_network_namespace_nothing_is_known(stack: ExitStack) -> None:
    key, _ = a_child(stack, "unshare", "-rn", "sh", "-c", "echo ready; exec sleep 600")
    assert tcp_sockets([key]) == {key: None}


def test_of_a_process_that_is_gone_or_after_too_many_files_nothing_is_known(tmp_path: Path) -> None:
    gone, first, second, third = (ProcessKey(pid=pid, started=1) for pid in (2**22 + 1, 1, 2, 3))
    assert tcp_sockets([gone]) == {gone: None}
    for key, count in ((first, MOST_FILES // 2 + 1), (second, MOST_FILES // 2 + 1), (third, 3)):
        place = tmp_path / str(key.pid)
        (place / "ns").mkdir(parents=True)
        (place / "ns" / "net").symlink_to("net:[1]")
        (place / "fd").mkdir()
        for number in range(count):
            (place / "fd" / str(number)).symlink_to("/dev/null")
    (tmp_path / "self").symlink_to("3")
    assert tcp_sockets([first, second, third], str(tmp_path)) == {first: frozenset(), second: None, third: None}


def test_nothing_is_asked_of_the_kernel_for_no_sockets() -> None:
    assert tcp_bytes(frozenset()) == {}
    assert tcp_bytes({2**31}) == {}
