"""Two heads by mistake: each would carry out what the other one plans, out of one store."""

import asyncio
import os
import socket
from functools import partial
from pathlib import Path

import pytest

from steward.adapters.socket_owner import owner_of
from steward.head.serve import listen, lock_state_dir, when_free
from steward.ports import Permanent, Retryable
from steward_bed.local_setup import free_ports
from tests.fakes.stranger import a_strangers_port


def test_a_second_head_on_one_state_dir_says_which_process_has_it(tmp_path: Path) -> None:
    with (
        lock_state_dir(tmp_path / "state"),
        pytest.raises(Retryable, match=rf"state: process {os.getpid()} is a head that keeps its state there; end it"),
        lock_state_dir(tmp_path / "state"),
    ):
        pytest.fail("there are two")


def test_the_next_head_takes_over_what_a_dead_one_left(tmp_path: Path) -> None:
    with lock_state_dir(tmp_path):
        pass
    with lock_state_dir(tmp_path):
        assert (tmp_path / "stewardd.lock").read_text() == f"{os.getpid()}\n"


def test_a_state_dir_that_is_a_file_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(Permanent, match=r"state_dir .*/file: .*; name a folder"),
        lock_state_dir(tmp_path / "file"),
    ):
        pytest.fail("that is no folder")


def test_a_state_dir_that_cannot_be_made_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(Permanent, match=r"state_dir .*/file/state: .*; make it, owned by SlurmUser"),
        lock_state_dir(tmp_path / "file" / "state"),
    ):
        pytest.fail("there is no such place")


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_an_address_that_cannot_be_had_is_told_with_its_setting_and_the_remedy(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"{host}:{taken.getsockname()[1]}"
        with pytest.raises(Permanent) as refused:
            listen("http", where)
    assert str(refused.value).startswith(f"head.http = {where}: ")
    assert str(refused.value).endswith("; end what listens there (`ss -ltnp`), or set another address of this host")
    assert not set("('[") & set(str(refused.value).removesuffix("(`ss -ltnp`), or set another address of this host"))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_head_that_listens_at_every_address_is_reached_by_ipv4_and_by_ipv6(host: str) -> None:
    with (
        listen("listen", f"[::]:{free_ports(1)[0]}") as listener,
        socket.create_connection((host, listener.getsockname()[1])) as client,
        listener.accept()[0] as served,
    ):
        assert served.getpeername()[1] == client.getsockname()[1]
        assert owner_of(served.getpeername()[:2], served.getsockname()[:2]) == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's port needs root")
def test_a_port_that_another_user_has_taken_is_waited_for_and_everything_else_goes_on() -> None:
    """Any user may bind it in the second between two heads."""

    async def opened(port: int) -> socket.socket:
        return listen("http", f"127.0.0.1:{port}")

    async def story() -> None:
        with a_strangers_port() as port:
            here = partial(opened, port)
            waiting = asyncio.create_task(when_free(here, "http", f"127.0.0.1:{port}", again_s=0.01))
            await asyncio.sleep(0.1)
            assert not waiting.done()
        with await waiting as ours:
            assert ours.getsockname()[1] == port

    asyncio.run(story())


def test_a_port_of_another_service_ends_the_head_at_once() -> None:
    async def opened() -> socket.socket:
        return listen("http", where)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Permanent, match="end what listens there"):
            asyncio.run(when_free(opened, "http", where))
