"""Put the head together from the settings and run it until told to stop.

The loop with agents and HTTP runs in this thread, the cycle in one of its own.
"""

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from steward import __version__
from steward.adapters.settings_file import load
from steward.adapters.settings_path import settings_path
from steward.adapters.socket_owner import listeners, owner_of
from steward.adapters.socket_path import AT_ONCE, lengthen
from steward.api.user_names import login
from steward.head.choose import no_state_dir, start_logging
from steward.head.slim import Slim
from steward.head.wiring import Head, Shared, build_head
from steward.model.settings import RepairMode, Settings, SettingsError, split_host_port
from steward.model.settings.sections import ApiSettings
from steward.model.text import REPORT_ONLY, cause
from steward.ports import Permanent, PortError, Retryable
from steward.workflows.leading import End

T = TypeVar("T")

log = logging.getLogger(__name__)

_CYCLE_ENDS_S = 15.0
_LEASE_ENDS_S = 3.0
_FOLLOW_S = 0.5
"""How often a follower's cycle looks whether a look at Slurm is due; the lead wakes it at once."""
_HTTP_ENDS_S = 1
_IDLE_S = 10.0
"""uvicorn itself ends a connection 5 s after an answer, but waits for ever for a first request."""
_BACKLOG = 1024
MAX_CONNECTIONS = 256
SHARE = 64
"""The most HTTP connections of one peer, so that no peer can keep others out."""


# Any user of this machine can reach a port on loopback, and with uvicorn alone one user could hold all connections
# without a request. tests/unit/head/test_http_server.py shows what each of these classes prevents.


class IdleConnections:
    """A look at all HTTP connections that ends the idle ones: they count towards the server's limit.

    `protocols` are uvicorn's connections; `cycle` of each is its last request, if any. A request that arrives in small
    pieces counts only once it is whole.
    """

    def __init__(self) -> None:
        self._before: dict[Any, Any] = {}

    def look(self, protocols: Iterable[Any]) -> None:
        """End the connections that were idle at the last look and had no request since."""
        idle = {one: one.cycle for one in protocols if one.cycle is None or one.cycle.response_complete}
        for protocol, last in idle.items():
            if protocol in self._before and self._before[protocol] is last:
                protocol.transport.abort()
        self._before = idle


class SharedHttp(H11Protocol):
    """uvicorn's connection, closed at once if its peer has more than `SHARE`.

    A peer on this machine is a uid if that is known; any other peer is an address.
    """

    peer: object = None

    def data_received(self, data: bytes) -> None:
        date = formatdate(time.time(), usegmt=True).encode()
        self.server_state.default_headers = [(b"date", date), *self.config.encoded_headers]
        super().data_received(data)

    def connection_made(self, transport: Any) -> None:
        """Close the connection if its peer has too many."""
        super().connection_made(transport)
        self.peer = _peer_of(transport)
        others = (one.peer for one in self.connections if isinstance(one, SharedHttp))
        if self.peer is not None and sum(peer == self.peer for peer in others) > SHARE:
            transport.abort()


def _peer_of(transport: Any) -> object:
    """Return the uid or the address of the peer; None if neither is known."""
    theirs, ours = (transport.get_extra_info(name) for name in ("peername", "sockname"))
    if not theirs or not ours:  # it has gone away already
        return None
    owner = owner_of(theirs[:2], ours[:2])
    return theirs[0] if owner is None and theirs[0] != ours[0] else owner


class _Http(uvicorn.Server):
    """uvicorn that ends idle connections and leaves signals to the daemon, which handles them for all its parts."""

    def __init__(self, config: uvicorn.Config, idle_s: float) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        super().__init__(config)
        self._idle, self._idle_s, self._told = IdleConnections(), idle_s, asyncio.Event()
        self._slim = Slim()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        lengthen(sockets or (), _BACKLOG)

    async def main_loop(self) -> None:
        """Wait until told to exit; look at connections and memory every `idle_s` seconds."""
        self._loop = asyncio.get_running_loop()
        while not self.should_exit:
            self._idle.look(self.server_state.connections)
            if self._slim.look():
                log.info("memory that is not needed any more was given back")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._idle_s):
                    await self._told.wait()

    @property
    def should_exit(self) -> bool:
        """Return whether the server was told to exit."""
        return self._exits

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._exits = value
        if value and self._loop is not None:
            self._loop.call_soon_threadsafe(self._told.set)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def start(config: Path | None, log_level: str) -> int:
    """Run `stewardd`; return its exit status."""
    start_logging(logging.getLevelName(log_level.upper()))
    try:
        settings = load(config, os.environ)
        with lock_state_dir(settings.head.state_dir):
            return serve(build_head(settings, settings_path(config, os.environ)), settings)
    except SettingsError as error:
        print(f"stewardd: {error}", file=sys.stderr)
        return 2
    except PortError as error:
        print(f"stewardd: {error}", file=sys.stderr)
        return 1


def serve(head: Head, settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. Raises Permanent if a port is taken or a certificate is wrong.

    A port that another ordinary user has taken is waited for: the head does all else meanwhile.
    """
    suit_many_nodes()
    return asyncio.run(_serve(head, settings))


async def _serve(head: Head, settings: Settings) -> int:
    told, over = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    places = [("http", settings.head.http, head.app)]
    if settings.head.users_http:
        places.append(("users_http", settings.head.users_http, head.users))
    servers = [(http_server(app, settings.api), key, where) for key, where, app in places]
    hearing: asyncio.Task[Any] = asyncio.create_task(_hear_agents(head, settings.head.listen))
    opening = [asyncio.create_task(when_free(partial(_open, key, where), key, where)) for _, key, where in servers]
    await asyncio.wait((hearing, *opening), timeout=_AGAIN_S)
    for each in (hearing, *opening):
        if each.done():
            each.result()
        each.add_done_callback(partial(_note_failure, over))
    serving = {
        asyncio.create_task(_serve_http(http, at)): http for (http, _, _), at in zip(servers, opening, strict=True)
    }
    ends = partial(asyncio.get_running_loop().call_soon_threadsafe, over.set)
    thread = threading.Thread(target=_run_cycle, args=(head, ends), name="cycle", daemon=True)
    thread.start()
    lease = _start_lease(head.shared, ends) if head.shared is not None else []
    log.info("stewardd %s is up; agents at %s, HTTP at %s", __version__, settings.head.listen, settings.head.http)
    if settings.repair.mode is RepairMode.REPORT:
        log.warning("%s", REPORT_ONLY)
    await _until((told, over), serving)
    head.notifier.stopping()
    hands_over = head.shared is not None and head.shared.leading.end is End.HANDED_OVER
    failed = (over.is_set() and not hands_over) or any(each.done() for each in serving)
    if head.cycle.clock_set:
        log.error("%s: stewardd ends, so that the next one begins with times that are true", head.cycle.clock_set)
    for each in (hearing, *opening):
        each.cancel()
    await _stop(head, serving, thread, lease)
    return 1 if failed else 0


def _run_cycle(head: Head, ends: Callable[[], object]) -> None:
    """Run the cycle, once this head leads; end the head when the cycle ends."""
    try:
        if head.shared is None or _follow(head, head.shared):
            head.notify.start()
            head.cycle.run()
    finally:
        _call(ends)


def _follow(head: Head, shared: Shared) -> bool:
    """Follow until this head leads; return False if it stops before."""
    leading = shared.leading
    while not leading.leads.wait(_FOLLOW_S):
        if leading.is_stopped():
            return False
        shared.following.step()
    head.hub.lead()
    head.cycle.lead()
    return True


def _start_lease(shared: Shared, ends: Callable[[], object]) -> list[threading.Thread]:
    """Start the threads beside the cycle of a head that shares its database, and return them."""
    threads = [
        threading.Thread(target=shared.leading.run, args=(partial(_call, ends),), name="lease", daemon=True),
        threading.Thread(target=shared.leading.watch_deadline, name="deadline", daemon=True),
        threading.Thread(target=shared.beside.run, name="controller", daemon=True),
    ]
    for thread in threads:
        thread.start()
    return threads[:1]


def _call(ends: Callable[[], object]) -> None:
    """Tell the loop that a part has ended."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: the head has ended already
        ends()


async def _until(events: Iterable[asyncio.Event], serving: Iterable["asyncio.Task[None]"]) -> None:
    """Wait until one of the events is set, or an HTTP server ended by itself."""
    waiting = {asyncio.create_task(each.wait()) for each in events}
    await asyncio.wait({*waiting, *serving}, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()


async def _stop(
    head: Head,
    serving: Mapping["asyncio.Task[None]", _Http],
    thread: threading.Thread,
    lease: Sequence[threading.Thread],
) -> None:
    """Stop all parts; the cycle finishes its turn first, so that the outcomes of its actions are recorded."""
    log.info("stewardd stops")
    # A turn that is cut off is done again by the next head.
    head.cycle.stop()
    if head.shared is not None:
        await asyncio.to_thread(_give_up_lead, head.shared, thread, lease)
    await asyncio.to_thread(head.notify.stop)
    await asyncio.to_thread(thread.join, _CYCLE_ENDS_S)
    await head.hub.close()
    for http in serving.values():
        http.should_exit = True
    await asyncio.gather(*serving)


def _give_up_lead(shared: Shared, cycle: threading.Thread, lease: Sequence[threading.Thread]) -> None:
    """Give up the lease as soon as the cycle has ended its turn: another head waits for it."""
    shared.beside.stop()
    if shared.leading.leads.is_set():
        cycle.join(_CYCLE_ENDS_S)
    shared.leading.stop()
    for thread in (*lease, cycle):
        thread.join(_LEASE_ENDS_S)
    shared.leading.release()


async def _hear_agents(head: Head, where: str) -> None:
    async def start() -> int:
        return await head.hub.start(listen("listen", where))

    await when_free(start, "listen", where)


async def _open(key: str, where: str) -> socket.socket:
    return listen(key, where)


async def _serve_http(http: _Http, opening: "asyncio.Task[socket.socket]") -> None:
    """Serve at the socket once it is open; return without it if the head ends before."""
    await asyncio.wait({opening})
    if not opening.cancelled():
        await http.serve([opening.result()])


def _note_failure(over: asyncio.Event, task: "asyncio.Task[Any]") -> None:
    """End the head if what it waited for cannot be."""
    if not task.cancelled() and task.exception() is not None:
        over.set()


_AGAIN_S = 1.0


async def when_free(start: Callable[[], Awaitable[T]], key: str, where: str, *, again_s: float = _AGAIN_S) -> T:
    """Return the result of `start`, which listens at the address of setting `head.KEY`.

    While it fails because another ordinary user listens there, say so and try again. Else raises Permanent.
    """
    told = False
    while True:
        try:
            return await start()
        except Permanent as error:
            strangers = listeners(*split_host_port(where)) - {0, os.geteuid()}
            if not strangers:
                raise
            if not told:
                users = ", ".join(map(login, sorted(strangers)))
                log.error("%s; it is of %s: waits until the port is free, and does all else meanwhile", error, users)
            told = True
        await asyncio.sleep(again_s)


def listen(key: str, where: str) -> socket.socket:
    """Return a socket that listens at the address of setting `head.KEY`. Raises Permanent if that fails.

    `[::]` is every address of this machine, those of IPv4, too.
    """
    host, port = split_host_port(where)
    if host == "::" and not socket.has_dualstack_ipv6():  # a kernel without IPv6
        host = "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")
    except OSError as error:
        # str(error) would hold the address as a Python tuple
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else cause(error)
        remedy = "end what listens there (`ss -ltnp`), or set another address of this host"
        raise Permanent(f"head.{key} = {where}: {why}; {remedy}") from error


def http_server(app: Starlette, api: ApiSettings, *, idle_s: float = _IDLE_S) -> _Http:
    """Return the HTTP server, with TLS if a certificate is configured. Raises Permanent if the certificate is unusable.

    A connection without a request is ended after `idle_s` to twice that.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        http=SharedHttp,
        limit_concurrency=MAX_CONNECTIONS,
        backlog=AT_ONCE,
        timeout_graceful_shutdown=_HTTP_ENDS_S,
        ssl_certfile=api.tls_certificate,
        ssl_keyfile=api.tls_key,
    )
    try:
        config.load()
    except OSError as error:  # an SSLError is one, too
        where = f"api.tls_certificate {api.tls_certificate}, api.tls_key {api.tls_key}"
        raise Permanent(f"{where}: {cause(error)}; give both as PEM files that SlurmUser can read") from error
    return _Http(config, idle_s)


# Sole head: only one may use a state_dir. A second one, started by hand, would write into the first one's store, and
# each would carry out the other's plans.

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of a file system without locks; on such a file system a second head is not kept out."""


@contextlib.contextmanager
def lock_state_dir(directory: Path) -> Iterator[None]:
    """Hold the head's state_dir, made if absent. The lock of a dead head is free.

    Raises Retryable if another head holds the directory, Permanent if it cannot be made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / "stewardd.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise no_state_dir(directory, error) from error
    try:
        _hold(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _hold(descriptor: int, directory: Path) -> None:
    """Take the lock and write our process id. Raises Retryable or Permanent."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "?"
        text = f"process {holder} is a head that keeps its state there; end it, or give this one a place of its own"
        raise Retryable(f"head.state_dir {directory}: {text}") from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise Permanent(f"head.state_dir {directory}: {cause(error)}") from error
    with contextlib.suppress(OSError):  # a full disk is reported by the store; the lock holds without the number
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


# How Python runs the head, whose memory is pictures of thousands of nodes, made anew in every turn.
#
# Measured with 1,200 nodes on two busy cores (`make bench-capacity`): the slowest read of the API in a hundred took 300
# to 390 ms with Python's defaults, and 90 ms with these values. The cause was collections of cyclic garbage, up to 440
# ms each. The head makes little cyclic garbage: a picture is freed when the next one takes its place.

_TURN_S = 0.001
"""How long a computing thread may run before another one has its turn (Python's default: 5 ms)."""
_GARBAGE = (50_000, 10, 500)
"""Thresholds of Python's three generations of garbage: new objects before a collection of the young generation,
young collections before one of the middle generation, and middle ones before one of all.

The middle generation is collected soon: connections that strangers open and close leave garbage that often survives the
young one.
"""

_MALLOC = ((-8, 2), (-3, 1 << 17), (-1, 1 << 18))
"""glibc's M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD: heaps, and bytes."""


def suit_many_nodes() -> None:
    """Set up Python for pictures of thousands of nodes, for the rest of the process."""
    sys.setswitchinterval(_TURN_S)
    gc.collect()
    # Objects that exist by now stay for good: never search them for garbage.
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    gc.enable()
    _return_memory()


def _return_memory() -> None:
    """Return large pieces of freed memory, such as Slurm's answers and pages of the API, to the system."""
    # glibc would keep the memory in the heap of each thread; other C libraries have no such option.
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        for what, value in _MALLOC:
            library.mallopt(what, value)
