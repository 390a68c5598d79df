"""The second witness, which finds out whether a live slurmd is behind a node's port.

The kernel of a stopped process still accepts its connections. So the witness closes its own side (half-close): a live
slurmd then closes too, or complains; a frozen one does neither. Tried on slurmd 22.05.8, 24.11.5 and 26.05.5: alive,
stopped and killed.

Any user can hold more connections to slurmd than it serves. Then it answers as a frozen one does, and once its queue is
full, its kernel drops new connections as if there were no host: another port of the host tells whether it is there.
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
from steward.model.witness import Address, Witness, WitnessSeen
from steward.ports import Retryable

_Target = tuple[socket.AddressFamily, Any]
_REFUSALS = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError)
_NO_ANSWER = (socket.EAI_AGAIN, socket.EAI_FAIL)
_OURS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.ENETUNREACH}
)
"""Errors of this machine, which say nothing about the host."""
_AT_ONCE = 1000
"""Connections that are being made: a rack without power answers none of them, and each result is soon too old."""
_NAMES_AT_ONCE = 32
_SLOW = 0.3
"""After this share of the time for a connection, another port of the host is tried, too."""
_UNUSED_PORT = 1
_BUNCH_S = 0.02
"""Findings within this time of each other are reported together."""


class PortWitness:
    """WitnessPort by TCP. A look takes at most `connect_s` + `answer_s` seconds, and `connect_s` more for its name.

    A host whose name does not exist is not there. If the resolver itself does not answer, or this machine has no socket
    or network to look with, there is no finding.
    """

    def __init__(self, *, connect_s: float = 1.0, answer_s: float = 1.0, now: Callable[[], float] = time.time) -> None:
        self._connect_s = connect_s
        self._answer_s = answer_s
        self._now = now

    def look(self, address: Address) -> WitnessSeen | None:
        """Return the finding of one look, as in `look_at_all`; None if there is none."""
        found: list[WitnessSeen] = []
        only = NodeName(address.host)
        self.look_at_all({only: address}, lambda seen: found.append(seen[only]))
        return found[0] if found else None

    def look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        """Look at all slurmds at once, and pass the findings to `saw` as they come.

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
        """Return where to connect to; empty if there is no such host. Raises Retryable if the resolver is silent."""
        if not 0 < address.port < 65536:  # the resolver would take it modulo 65536 and look at somebody else
            return []
        with contextlib.suppress(OSError, UnicodeError):
            return _resolve(address, socket.AI_NUMERICHOST)
        try:
            return await names.call(lambda: _resolve(address), name=address.host, timeout_s=self._connect_s)
        except socket.gaierror as error:
            if error.errno in _NO_ANSWER:
                raise Retryable(f"{address.host}: {error}") from None
            return []
        except (OSError, UnicodeError):
            return []

    async def _connect(self, target: _Target) -> Witness:
        """Return the finding for one target. Raises Retryable if this machine cannot look."""
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
            if error.errno in _OURS:
                raise Retryable(str(error)) from None
            is_there = isinstance(error, TimeoutError) and error.errno is None and await elsewhere
            return Witness.UNANSWERED if is_there else Witness.SILENT
        finally:
            elsewhere.cancel()

    async def _answer(self, connection: socket.socket) -> Witness:
        """Return the finding after a connection was accepted."""
        connection.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(self._answer_s):
                # At the end of the stream as good as with an answer.
                await asyncio.get_running_loop().sock_recv(connection, 1)
        except TimeoutError:
            return Witness.UNANSWERED
        return Witness.ALIVE

    async def _is_there(self, target: _Target) -> bool:
        """Return whether the host's kernel answers at an unused port; asked only if slurmd's port is slow."""
        await asyncio.sleep(_SLOW * self._connect_s)
        family, (host, _, *more) = target
        try:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.setblocking(False)
                async with asyncio.timeout((1 - _SLOW) * self._connect_s):
                    await asyncio.get_running_loop().sock_connect(connection, (host, _UNUSED_PORT, *more))
            return True
        except _REFUSALS:
            return True
        except OSError:
            return False


def _resolve(address: Address, flags: int = 0) -> list[_Target]:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, where) for family, _, _, _, where in found]
