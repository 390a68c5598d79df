"""The agent's unix socket: one request a connection, from a shim whose user the kernel names.

Files beside the socket hold the head's settings for the shim of this machine: the defaults for jobs without the option,
and the warning for jobs submitted with it.
"""

import asyncio
import contextlib
import logging
import re
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from steward.adapters.entrance import Allowance, Entrance
from steward.adapters.files import write_whole
from steward.adapters.socket_owner import peer_of
from steward.adapters.wire.shimline import MAX_LINE, WAIT, AskLine, BadLine, Request, parse_request
from steward.model.resume_mode import SiteDefault
from steward.model.text import cause_and_file

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 1.0
WAIT_EVERY_S = 1.0
MAX_PER_USER = 64
MAX_PARKED = 1024
"""How many of a user's surplus connections wait for a moment before they are closed: a program that retries at once
must not keep the agent busy."""
PARK_S = 0.5
LINES_PER_S = 100.0
LINES_AT_ONCE = 128
ASKS_PER_S = 1.0
ASKS_AT_ONCE = MAX_PER_USER
"""The limits of asks, which cost more than other lines: the head has to decide, and the shim waits for it."""

Serve = Callable[[Request, int], Awaitable[bytes | None]]
"""(request, uid of the peer) -> the last line for the shim, or None to close. Cancelled if the shim closes first."""


class ShimSocket:
    """The socket at `path`, with limits for each user, so that a broken program cannot starve other users.

    A user may have `MAX_PER_USER` connections and send `LINES_AT_ONCE` lines, then `LINES_PER_S`; of these,
    `ASKS_AT_ONCE` asks, then `ASKS_PER_S`. Root (Slurm's own processes) has no limit.
    """

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
        """Serve until cancelled. Raises Permanent if the socket cannot be made."""
        entrances: list[Entrance] = []
        try:
            for path, mode in ((root_socket(self._path), 0o600), (self._path, 0o666)):
                rival = f"steward-agent answers at {path}: stop it first, or set another agent.socket"
                entrances.append(Entrance(path, mode, self._admit, rival=rival))
            await asyncio.Event().wait()
        finally:
            for entrance in entrances:
                entrance.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _admit(self, peer: socket.socket) -> None:
        """Serve the connection; close it later, unread, if its user has too many."""
        # a surplus connection must cost little: a user may open thousands a second
        _, uid = peer_of(peer)
        self._open[uid] += 1
        if uid == 0 or self._open[uid] <= MAX_PER_USER:
            task = asyncio.get_running_loop().create_task(self._serve_connection(peer, uid))
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._ended(task, uid))
        else:
            parked_s = PARK_S if self._open[uid] <= MAX_PARKED else 0.0
            asyncio.get_running_loop().call_later(parked_s, self._hang_up, peer, uid)

    def _hang_up(self, peer: socket.socket, uid: int) -> None:
        peer.close()
        self._open -= Counter((uid,))  # drops users without connections

    def _ended(self, task: "asyncio.Task[None]", uid: int) -> None:
        self._tasks.discard(task)
        self._open -= Counter((uid,))

    async def _serve_connection(self, peer: socket.socket, uid: int) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=peer, limit=MAX_LINE)
        try:
            if uid and (wait_s := self._allowance.wait_s(uid)):
                await asyncio.sleep(wait_s)
            await self._serve_request(reader, writer, uid)
        except (BadLine, OSError) as error:
            log.info("shim refused uid=%d why=%r", uid, cause_and_file(error))
        finally:
            writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uid: int) -> None:
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
        """Send `WAIT` every `wait_every_s` (None: never) until the answer is there, then the answer."""
        while not hangup.done():
            await asyncio.wait((answer, hangup), timeout=wait_every_s, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                writer.write(answer.result() or b"")
                return
            writer.write(WAIT)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the shim's line. Raises BadLine if it takes longer than REQUEST_TIMEOUT_S."""
    # If the agent itself was held up, a line that has come by then is served.
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


def root_socket(path: Path) -> Path:
    """Return the path of root's own socket, beside the socket for all users, whose queue any user can fill."""
    return path.with_name(f"{path.name}.root")


DEFAULTS = "defaults"
WARNING = "warning"
_NO_BLANKS = re.compile(r"[!-~]*\Z")


def write_defaults(folder: Path, defaults: Iterable[SiteDefault]) -> None:
    """Write the file of the site's defaults, or remove it if there are none; log a failure to write."""
    # After a failure, jobs start without the site's default.
    text = "".join(f"{line}\n" for line in map(_default_line, defaults) if line)
    _write_or_remove(folder / DEFAULTS, text)


def write_warning(folder: Path, warning: str) -> None:
    """Write the sentence that sbatch shows, or remove it if it is empty; log a failure to write."""
    _write_or_remove(folder / WARNING, f"{warning}\n" if warning else "")


def _write_or_remove(file: Path, text: str) -> None:
    try:
        if text:
            file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_whole(file, text.encode("ascii", "replace").decode(), mode=0o644)
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("cannot write the file for the shim file=%s why=%r", file, cause_and_file(error))


def _default_line(one: SiteDefault) -> str:
    """Return the line of a default; empty, with a warning in the log, for one that no job can match."""
    # Slurm's names have no blanks.
    words = {"partition": one.partition, "account": one.account, "qos": one.qos, "mode": one.mode.text}
    if not all(_NO_BLANKS.match(word) for word in words.values()):
        log.warning("site's default ignored why='a name has blanks or is not ASCII' is=%r", words)
        return ""
    return " ".join(f"{key}={word}" for key, word in words.items() if word)
