"""The kernel says whose a local connection is, and nothing of one that is not there."""

import os
import socket
from contextlib import ExitStack

import pytest

from steward.adapters.socket_owner import listeners, owner_of

FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]


@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_a_connection_of_this_process_is_its_users(family: socket.AddressFamily, host: str) -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, 0), family=family))
        client = stack.enter_context(socket.create_connection(listener.getsockname()[:2]))
        served, _ = listener.accept()
        stack.enter_context(served)
        theirs, ours = served.getpeername()[:2], served.getsockname()[:2]
        assert client.getsockname()[:2] == theirs
        assert owner_of(theirs, ours) == os.geteuid()


@pytest.mark.parametrize("theirs", [("127.0.0.1", 1), ("192.0.2.1", 40000), ("::1", 1), ("no address", 1)])
def test_of_a_connection_that_is_not_there_nothing_is_known(theirs: tuple[str, int]) -> None:
    assert owner_of(theirs, ("::1" if ":" in theirs[0] else "127.0.0.1", 2)) is None


@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_who_listens_at_a_port_is_known(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        assert listeners(host, port) == {os.geteuid()}
        assert listeners("::" if family is socket.AF_INET6 else "0.0.0.0", port) == {os.geteuid()}
        assert listeners("192.0.2.1", port) == frozenset()
    assert listeners(host, port) == frozenset()


def test_who_listens_at_all_addresses_listens_at_each() -> None:
    with socket.create_server(("", 0)) as listener:
        assert listeners("127.0.0.1", listener.getsockname()[1]) == {os.geteuid()}
    assert listeners("no address", 80) == frozenset()
