"""The second witness: a look at a node's port that tells whether a live slurmd is behind it.

A stopped process still has its connections accepted, by its kernel. So the witness half-closes the connection: a live
slurmd then closes too, or complains; a frozen one does neither. Tried on slurmd 22.05.8, 24.11.5 and 26.05.5: alive,
stopped and killed.

Any user can hold more connections to slurmd than it serves. Then slurmd seems frozen, and once its queue is full the
kernel drops new connections, as if there were no host: another port of the host tells whether the host is there.
"""

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from steward.adapters.offload import Threads
from steward.model.ids import NodeName
from steward.model.text import cause
from steward.model.witness import Address, Witness, WitnessSeen
from steward.ports import Retryable

_Target = tuple[socket.AddressFamily, Any]
_REFUSALS = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError)
_RESOLVER_ERRORS = (socket.EAI_AGAIN, socket.EAI_FAIL)
_OWN_ERRORS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.ENETUNREACH}
)
"""Errors of this machine that prevent a look, and say nothing about the host."""
_AT_ONCE = 1000
"""The limit on connections being made: a rack without power answers none, and results soon grow old."""
_NAMES_AT_ONCE = 32
_SLOW_SHARE = 0.3
"""After this share of the time for a connection, another port of the host is tried too."""
_UNUSED_PORT = 1
_BUNCH_S = 0.02
"""Results within this time of each other are reported together."""


class PortWitness:
    """WitnessPort by TCP connections.

    One look takes at most `connect_s` + `answer_s` seconds, and as long again for the host's name. A host whose name
    does not exist is SILENT; if the resolver does not answer, or this machine has no socket or network for the look,
    there is no result.
    """

    def __init__(self, *, connect_s: float = 1.0, answer_s: float = 1.0, now: Callable[[], float] = time.time) -> None:
        self._connect_s = connect_s
        self._answer_s = answer_s
        self._now = now

    def look(self, address: Address) -> WitnessSeen | None:
        """Look at one address; return None if there is no result."""
        found: list[WitnessSeen] = []
        only = NodeName(address.host)
        self.look_at_all({only: address}, lambda seen: found.append(seen[only]))
        return found[0] if found else None

    def look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        """Look at all addresses, and pass the results to `saw` as they come.

        ALIVE: slurmd answered or closed. REFUSED: the host is there and no process listens. UNANSWERED: the host is
        there and nothing comes back. SILENT: anything else.
        """
        asyncio.run(self._look_at_all(addresses, saw))

    async def _look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        names, connections = Threads(_NAMES_AT_ONCE), asyncio.Semaphore(_AT_ONCE)
        waiting = {
            asyncio.create_task(self._look(address, names, connections)): node for node, address in addresses.items()
        }
        while waiting:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if len(waiting) > 1:
                await asyncio.sleep(_BUNCH_S)
            done = [(waiting.pop(task), task.result()) for task in [*waiting] if task.done()]
            if seen := {node: result for node, result in done if result is not None}:
                saw(seen)

    async def _look(self, address: Address, names: Threads, connections: asyncio.Semaphore) -> WitnessSeen | None:
        result = Witness.SILENT
        try:
            found = await self._targets(address, names)
            async with connections:
                for target in found:
                    result = await self._connect(target)
                    if result is Witness.ALIVE:
                        break
        except Retryable:
            return None
        return WitnessSeen(result=result, at=self._now())

    async def _targets(self, address: Address, names: Threads) -> list[_Target]:
        """Return the addresses to connect to, or none if there is no such host.

        Raises Retryable if the resolver does not answer.
        """
        if not 0 < address.port < 65536:  # the resolver would take the port modulo 65536, that of another service
            return []
        with contextlib.suppress(OSError, UnicodeError):
            return _resolve(address, socket.AI_NUMERICHOST)
        try:
            return await names.call(lambda: _resolve(address), name=address.host, timeout_s=self._connect_s)
        except socket.gaierror as error:
            if error.errno in _RESOLVER_ERRORS:
                raise Retryable(f"{address.host}: {cause(error)}") from None
            return []
        except (OSError, UnicodeError):
            return []

    async def _connect(self, target: _Target) -> Witness:
        """Return the result of one connection. Raises Retryable if this machine cannot look."""
        loop = asyncio.get_running_loop()
        elsewhere = loop.create_task(self._is_there(target))
        try:
            with socket.socket(target[0], socket.SOCK_STREAM) as connection:
                connection.setblocking(False)
                async with asyncio.timeout(self._connect_s):
                    await loop.sock_connect(connection, target[1])
                elsewhere.cancel()
                return await self._answer(connection)
        except _REFUSALS:
            return Witness.REFUSED
        except OSError as error:
            if error.errno in _OWN_ERRORS:
                raise Retryable(cause(error)) from None
            is_there = isinstance(error, TimeoutError) and error.errno is None and await elsewhere
            return Witness.UNANSWERED if is_there else Witness.SILENT
        finally:
            elsewhere.cancel()

    async def _answer(self, connection: socket.socket) -> Witness:
        """Return whether the process behind an accepted connection is alive."""
        connection.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(self._answer_s):
                # The end of the stream counts as an answer, too.
                await asyncio.get_running_loop().sock_recv(connection, 1)
        except TimeoutError:
            return Witness.UNANSWERED
        return Witness.ALIVE

    async def _is_there(self, target: _Target) -> bool:
        """Return whether the host's kernel answers at an unused port; asked only if slurmd's port is slow."""
        await asyncio.sleep(_SLOW_SHARE * self._connect_s)
        family, (host, _, *more) = target
        try:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.setblocking(False)
                async with asyncio.timeout((1 - _SLOW_SHARE) * self._connect_s):
                    await asyncio.get_running_loop().sock_connect(connection, (host, _UNUSED_PORT, *more))
            return True
        except _REFUSALS:
            return True
        except OSError:
            return False


def _resolve(address: Address, flags: int = 0) -> list[_Target]:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, where) for family, _, _, _, where in found]
