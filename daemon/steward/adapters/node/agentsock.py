"""The agent's unix socket: one request a connection, from a shim whose user the kernel names. And the head's words on
the site, in files beside the socket, where the shim of this machine reads them: the defaults for jobs without the
option, and the warning for whoever submits a job with it."""

import asyncio
import contextlib
import logging
import re
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from steward.adapters.files import write_whole
from steward.adapters.socket_path import make_free, peer_of, served_first
from steward.adapters.wire.shimline import MAX_LINE, WAIT, AskLine, BadLine, Request, parse_request
from steward.model.resume_mode import SiteDefault
from steward.ports import Permanent

_MAX_USERS = 1024


class Allowance:
    def __init__(self, *, per_s: float, burst: int, now: Callable[[], float]) -> None:
        self._each_s, self._burst_s, self._now = 1 / per_s, (burst - 1) / per_s, now
        self._spent: dict[int, float] = {}
        """Until when what each user said is paid for."""

    def wait_s(self, user: int) -> float:
        """Counts a line of the user's; how long it has to wait."""
        now = self._now()
        if len(self._spent) >= _MAX_USERS:
            self._spent = {each: until for each, until in self._spent.items() if until > now}
        paid = max(self._spent.get(user, now), now)
        self._spent[user] = paid + self._each_s
        return max(paid - self._burst_s - now, 0.0)


log = logging.getLogger(__name__)

_BACKLOG = 512
REQUEST_TIMEOUT_S = 1.0
WAIT_EVERY_S = 1.0
MAX_PER_USER = 64
MAX_PARKED = 1024
"""More of a user's connections than are served wait for a moment and are hung up on: who only tries again at once must
not keep us busy."""
PARK_S = 0.5
LINES_PER_S = 100.0
LINES_AT_ONCE = 128
ASKS_PER_S = 1.0
ASKS_AT_ONCE = MAX_PER_USER
"""What the head has to decide costs more than a line; a shim waits patiently for it."""

Serve = Callable[[Request, int], Awaitable[bytes | None]]
"""(request, uid of the peer) -> the last line for the shim, or None to hang up. Cancelled when the shim hangs up."""


class ShimSocket:
    """Listens at `path`. A user may have `MAX_PER_USER` connections and say `LINES_AT_ONCE` lines, then `LINES_PER_S`,
    of these `ASKS_AT_ONCE` asks, then `ASKS_PER_S`: a broken program cannot starve the others. Root (Slurm's own) is
    not counted."""

    def __init__(
        self,
        path: Path,
        serve: Serve,
        *,
        wait_every_s: float = WAIT_EVERY_S,
        allowance: Allowance | None = None,
    ) -> None:
        self._path = path
        self._serve = serve
        self._wait_every_s = wait_every_s
        self._asks = Allowance(per_s=ASKS_PER_S, burst=ASKS_AT_ONCE, now=time.monotonic)
        self._allowance = allowance or Allowance(per_s=LINES_PER_S, burst=LINES_AT_ONCE, now=time.monotonic)
        self._open: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serves until cancelled. Raises Permanent when the socket cannot be made."""
        try:
            sock = _listen(self._path)
        except OSError as error:
            raise Permanent(f"cannot listen at {self._path}: {error}") from error
        server = await asyncio.start_unix_server(self._accept, sock=sock, limit=MAX_LINE, backlog=_BACKLOG)
        try:
            await asyncio.Event().wait()  # not serve_forever(): since 3.12 its end waits for every open connection
        finally:
            self._path.unlink(missing_ok=True)  # first: after the close it may be our successor's
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, uid = peer_of(writer.get_extra_info("socket"))
        self._open[uid] += 1
        try:
            if uid == 0 or await self._in_turn(uid):
                await self._talk(reader, writer, uid)
        except (BadLine, OSError) as error:
            log.info("shim refused uid=%d why=%r", uid, str(error))
        finally:
            self._open -= Counter((uid,))  # who has none is kept no more
            writer.close()

    async def _in_turn(self, uid: int) -> bool:
        """Wait until the user may speak again; False when he has too many connections."""
        if self._open[uid] > MAX_PER_USER:
            await asyncio.sleep(PARK_S if self._open[uid] <= MAX_PARKED else 0.0)
            return False
        if wait_s := self._allowance.wait_s(uid):
            await asyncio.sleep(wait_s)
        return True

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uid: int) -> None:
        request = parse_request(await _line(reader))
        wait_every_s = self._wait_every_s if isinstance(request, AskLine) else None
        if wait_every_s is not None:
            writer.write(WAIT)
        answer = asyncio.ensure_future(self._serve_in_turn(request, uid))
        hangup = asyncio.ensure_future(reader.read(1))
        try:
            await self._wait(writer, answer, hangup, wait_every_s)
        finally:
            for task in (answer, hangup):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await task

    async def _serve_in_turn(self, request: Request, uid: int) -> bytes | None:
        if isinstance(request, AskLine) and uid and (wait_s := self._asks.wait_s(uid)):
            await asyncio.sleep(wait_s)
        return await self._serve(request, uid)

    async def _wait(
        self,
        writer: asyncio.StreamWriter,
        answer: "asyncio.Future[bytes | None]",
        hangup: "asyncio.Future[bytes]",
        wait_every_s: float | None,
    ) -> None:
        """`wait_every_s` is None for who does not ask for a decision: he is told one line, the answer."""
        while not hangup.done():
            await asyncio.wait((answer, hangup), timeout=wait_every_s, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                writer.write(answer.result() or b"")
                return
            writer.write(WAIT)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The shim's line. Raises BadLine when it takes longer than REQUEST_TIMEOUT_S. The time that we are held up
    ourselves is not the shim's: a line that has come by then is served."""
    line = asyncio.ensure_future(reader.readuntil(b"\n"))
    try:
        await asyncio.wait((line,), timeout=REQUEST_TIMEOUT_S)
        if not line.done():
            raise BadLine(f"no whole line came within {REQUEST_TIMEOUT_S:g} s")
        return line.result()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BadLine(f"no whole line came ({type(error).__name__})") from None
    finally:
        line.cancel()


def _listen(path: Path) -> socket.socket:
    """A listening socket that every user may connect to. An old one is replaced, never one that is answered."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    make_free(path, rival=f"steward-agent answers at {path}: stop it first, or set another agent.socket")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with served_first(path) as hidden:
            sock.bind(str(hidden))
            hidden.chmod(0o666)  # who speaks is the kernel's word (SO_PEERCRED), not the file's mode
            sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


DEFAULTS = "defaults"
WARNING = "warning"
_PLAIN = re.compile(r"[!-~]*\Z")


def write_defaults(folder: Path, defaults: Iterable[SiteDefault]) -> None:
    """The file is either the old one or the new one; without defaults there is none. What cannot be written is told in
    the log: jobs then start without the site's default."""
    text = "".join(f"{line}\n" for line in map(_default_line, defaults) if line)
    _keep(folder / DEFAULTS, text)


def write_warning(folder: Path, warning: str) -> None:
    """Write the one sentence that sbatch shows; an empty one clears it. A failure to write goes to the log."""
    _keep(folder / WARNING, f"{warning}\n" if warning else "")


def _keep(file: Path, text: str) -> None:
    try:
        if text:
            file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_whole(file, text.encode("ascii", "replace").decode(), mode=0o644)
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("file for the shim not written file=%s why=%r", file, str(error))


def _default_line(one: SiteDefault) -> str:
    """Empty for one that no job can fit: Slurm's names have no blanks."""
    words = {"partition": one.partition, "account": one.account, "qos": one.qos, "mode": one.mode.text}
    if not all(_PLAIN.match(word) for word in words.values()):
        log.warning("site's default left out why='a name with blanks or other characters than ASCII' is=%r", words)
        return ""
    return " ".join(f"{key}={word}" for key, word in words.items() if word)
