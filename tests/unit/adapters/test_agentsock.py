"""The agent's socket, spoken to over real unix sockets."""

import asyncio
import contextlib
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from steward.adapters.entrance import Allowance
from steward.adapters.node import agentsock
from steward.adapters.node.agentsock import (
    DEFAULTS,
    MAX_PER_USER,
    REQUEST_TIMEOUT_S,
    WARNING,
    Serve,
    ShimSocket,
    root_socket,
    write_defaults,
    write_warning,
)
from steward.adapters.wire.shimline import OptedLine, Request
from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.ports import Permanent
from tests.fakes.dialled import is_listened_at, never_refused
from tests.fakes.until import FACT_S, comes_true

ASK = b"steward/1 ask kind=batch job=12 step=batch uid=0 mode=1 attempt=1 restart=0 status=256\n"
OPTED = b"steward/1 opted job=12 uid=0 mode=1 restart=0 batch=1\n"
WAIT = b"steward/1 wait\n"


@contextlib.asynccontextmanager
async def listening(
    path: Path, serve: Serve, wait_every_s: float = 30.0, allowance: Allowance | None = None
) -> AsyncIterator[None]:
    server = asyncio.ensure_future(ShimSocket(path, serve, wait_every_s=wait_every_s, allowance=allowance).run())
    while not path.exists():
        assert not server.done(), server.exception()
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


@pytest.fixture
def socket_for_all() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="steward-sock-"))  # pytest's own is closed to other users
    folder.chmod(0o755)
    yield folder / "s"
    shutil.rmtree(folder)


async def speak_as(uid: int, path: Path, line: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of that user who has said the line: the agent hangs up on who is silent for long."""
    os.seteuid(uid)
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    finally:
        os.seteuid(0)
    writer.write(line)
    return reader, writer


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(FACT_S):
            await story()

    asyncio.run(within())


async def say(path: Path, line: bytes) -> bytes:
    """Everything that comes back until the agent hangs up."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(line)
    try:
        return await all_of(reader)
    finally:
        writer.close()


async def all_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:  # it hung up without reading what we said
        return b""


async def answer_stop(request: Request, uid: int) -> bytes:
    return b"steward/1 stop\n"


async def after_waits(path: Path, waits: int, wait_every_s: float) -> bytes:
    """What comes after so many lines that tell an ask to wait; then it is answered."""
    decided = asyncio.Event()

    async def when_decided(request: Request, uid: int) -> bytes:
        await decided.wait()
        return b"steward/1 requeue\n"

    async with listening(path, when_decided, wait_every_s):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(ASK)
        for _ in range(waits):
            assert await reader.readline() == WAIT
        decided.set()
        rest = await all_of(reader)
        writer.close()
        return rest


def test_an_ask_is_told_to_wait_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        assert await after_waits(tmp_path / "s", 1, wait_every_s=30.0) == b"steward/1 requeue\n"

    run(story)


def test_an_ask_is_told_to_wait_again_until_it_is_answered(tmp_path: Path) -> None:
    async def story() -> None:
        rest = await after_waits(tmp_path / "s", 3, wait_every_s=0.1)
        assert rest.replace(WAIT, b"") == b"steward/1 requeue\n"

    run(story)


def test_opted_that_takes_long_is_told_its_answer_and_no_wait_before(tmp_path: Path) -> None:
    """A resumed script would begin without its last checkpoint, had its shim to make an answer of `wait`."""
    noted = asyncio.Event()

    async def note(request: Request, uid: int) -> bytes:
        await noted.wait()
        return b"steward/1 ok last_step=50\n"

    async def story() -> None:
        async with listening(tmp_path / "s", note, wait_every_s=0.01):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(OPTED)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readline(), 0.2)
            noted.set()
            assert await all_of(reader) == b"steward/1 ok last_step=50\n"
            writer.close()

    run(story)


def test_opted_is_answered_without_a_wait_and_the_peer_is_the_kernels_word(tmp_path: Path) -> None:
    seen: list[tuple[object, int]] = []

    async def note(request: Request, uid: int) -> bytes:
        assert isinstance(request, OptedLine)
        seen.append((request.job, uid))
        return b"steward/1 ok\n"

    async def story() -> None:
        async with listening(tmp_path / "s", note):
            assert await say(tmp_path / "s", OPTED) == b"steward/1 ok\n"

    run(story)
    assert seen == [(12, os.getuid())]


def test_a_refused_shim_is_hung_up_on(tmp_path: Path) -> None:
    async def refuse(request: Request, uid: int) -> None:
        return None

    async def story() -> None:
        async with listening(tmp_path / "s", refuse):
            assert await say(tmp_path / "s", OPTED) == b""

    run(story)


@pytest.mark.parametrize("line", [b"hello\n", ASK[:-2], b"x" * 5000, b"\x00\n"], ids=["words", "cut", "long", "bytes"])
def test_a_malformed_line_is_hung_up_on_and_the_next_shim_is_served(tmp_path: Path, line: bytes) -> None:
    async def story() -> None:
        async with listening(tmp_path / "s", answer_stop):
            assert await say(tmp_path / "s", line) == b""
            assert (await say(tmp_path / "s", ASK)).endswith(b"steward/1 stop\n")

    run(story)


def test_a_line_that_came_while_the_agent_was_held_up_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy node holds the agent up for longer than a shim may be silent: the shim was not silent."""
    listens, line = asyncio.Event(), agentsock._line

    async def heeded(reader: asyncio.StreamReader) -> bytes:
        listens.set()
        return await line(reader)

    monkeypatch.setattr(agentsock, "_line", heeded)

    async def story() -> None:
        async with listening(tmp_path / "s", answer_stop):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            await listens.wait()
            writer.write(ASK)
            time.sleep(REQUEST_TIMEOUT_S + 0.1)  # the whole process stands still
            assert (await all_of(reader)).endswith(b"steward/1 stop\n")
            writer.close()

    run(story)


def test_a_shim_that_hangs_up_cancels_its_ask(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def for_ever(request: Request, uid: int) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return b""

    async def story() -> None:
        async with listening(tmp_path / "s", for_ever):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(ASK)
            assert await reader.readline() == WAIT
            writer.close()
            await ended.wait()

    run(story)


def test_an_agent_that_stops_does_not_wait_for_the_shims_that_wait(tmp_path: Path) -> None:
    async def for_ever(request: Request, uid: int) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def story() -> None:
        async with listening(tmp_path / "s", for_ever):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(ASK)
            assert await reader.readline() == WAIT
        assert await all_of(reader) == b""
        writer.close()

    run(story)


def test_every_user_may_connect_whatever_the_umask(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path / "s", answer_stop):
            assert (tmp_path / "s").stat().st_mode & 0o777 == 0o666

    run(story)


def test_the_socket_is_not_there_before_it_is_served(tmp_path: Path) -> None:
    async def story() -> None:
        for number in range(50):
            path = tmp_path / f"s{number}"
            with never_refused(path) as answered:
                async with listening(path, answer_stop):
                    await comes_true("it answers", answered.is_set)
        assert not list(tmp_path.iterdir())

    run(story)


def test_the_socket_of_a_dead_agent_is_replaced_and_one_of_ours_is_removed_at_the_end(tmp_path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / "s"))
    dead.close()

    async def story() -> None:
        server = asyncio.ensure_future(ShimSocket(tmp_path / "s", answer_stop).run())
        await comes_true("it listens", lambda: is_listened_at(tmp_path / "s"))
        assert (await say(tmp_path / "s", ASK)).endswith(b"steward/1 stop\n")
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)

    run(story)
    assert not (tmp_path / "s").exists()


def test_a_second_agent_does_not_take_the_socket_of_a_live_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with listening(tmp_path / "s", answer_stop):
            with pytest.raises(Permanent, match="another steward-agent answers"):
                await ShimSocket(tmp_path / "s", answer_stop).run()
            assert (await say(tmp_path / "s", ASK)).endswith(b"steward/1 stop\n")

    run(story)


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(Permanent, match="not a socket"):
        asyncio.run(ShimSocket(tmp_path / "s", answer_stop).run())
    assert (tmp_path / "s").read_text() == "precious"


def fill_queue(path: Path) -> list[socket.socket]:
    held: list[socket.socket] = []
    while True:
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].setblocking(False)
        try:
            held[-1].connect(str(path))
        except BlockingIOError:
            return held


def test_root_has_an_entrance_of_its_own_where_a_user_fills_the_queue(tmp_path: Path) -> None:
    """Slurm's shims give up after a moment: other users' jobs would begin without Steward's knowledge."""

    async def story() -> None:
        async with listening(tmp_path / "s", answer_stop):
            held = fill_queue(tmp_path / "s")  # the loop takes none of them meanwhile
            entrance = root_socket(tmp_path / "s")
            assert stat.S_IMODE(entrance.stat().st_mode) == 0o600
            reader, writer = await asyncio.open_unix_connection(entrance)
            writer.write(OPTED)
            assert (await reader.readline()).startswith(b"steward/1 ")
            for one in held:
                one.close()
        assert not entrance.exists()

    run(story)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_user_may_not_hold_more_than_his_share_of_connections(socket_for_all: Path) -> None:
    async def for_ever(request: Request, uid: int) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def story() -> None:
        async with listening(socket_for_all, for_ever):
            held = [await speak_as(4242, socket_for_all, ASK) for _ in range(MAX_PER_USER)]
            for reader, _ in held:
                assert await reader.readline() == WAIT
            reader, _ = await speak_as(4242, socket_for_all, ASK)
            assert await all_of(reader) == b""
            root_reader, root_writer = await asyncio.open_unix_connection(socket_for_all)
            root_writer.write(ASK)
            assert await root_reader.readline() == WAIT

    run(story)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as another user")
def test_a_user_in_haste_waits_and_root_does_not(socket_for_all: Path) -> None:
    served: list[int] = []

    async def note(request: Request, uid: int) -> bytes:
        served.append(uid)
        return b"steward/1 ok\n"

    async def story() -> None:
        slow = Allowance(per_s=1e-6, burst=3, now=time.monotonic)
        async with listening(socket_for_all, note, allowance=slow):
            held = [await speak_as(4242, socket_for_all, OPTED) for _ in range(10)]
            for reader, _ in held[:3]:
                assert await all_of(reader) == b"steward/1 ok\n"
            assert await say(socket_for_all, OPTED) == b"steward/1 ok\n"
            assert served == [4242, 4242, 4242, 0]

    run(story)


GPU = SiteDefault(partition="gpu", account="llm", mode=ResumeMode.parse("any:3,max=7"))
LONG = SiteDefault(qos="long", mode=ResumeMode.parse("1"))


def test_each_default_is_a_line_that_every_user_may_read(tmp_path: Path) -> None:
    write_defaults(tmp_path / "run", (GPU, LONG))
    file = tmp_path / "run" / DEFAULTS
    assert file.read_text() == "partition=gpu account=llm mode=any:3,max=7\nqos=long mode=1\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_without_defaults_there_is_no_file(tmp_path: Path) -> None:
    write_defaults(tmp_path, (GPU,))
    write_defaults(tmp_path, ())
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_would_be_read_as_more_than_one_word_is_left_out(tmp_path: Path) -> None:
    write_defaults(tmp_path, (SiteDefault(account="a mode=1", mode=GPU.mode), LONG))
    assert (tmp_path / DEFAULTS).read_text() == "qos=long mode=1\n"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_defaults(tmp_path / "file", (GPU,))
    assert (tmp_path / "file").read_text() == ""


def test_the_warning_is_one_line_that_every_user_may_read_while_there_is_one(tmp_path: Path) -> None:
    write_warning(tmp_path, "resuming is off")
    file = tmp_path / WARNING
    assert file.read_text() == "resuming is off\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    write_warning(tmp_path, "")
    assert list(tmp_path.iterdir()) == []
