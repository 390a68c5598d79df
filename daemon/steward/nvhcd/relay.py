"""The socket that users dial: their connections lead to the service behind it, and each user has a share of them.

The kernel names the user of a connection, which gRPC does not tell its server.
"""

import asyncio
import socket
import time
from contextlib import suppress
from pathlib import Path

from steward.adapters.entrance import Allowance, Entrance
from steward.adapters.socket_owner import peer_of
from steward.adapters.together import run_together
from steward.model.fair import fair_share

MAX_CONNECTIONS = 64
"""The most connections at once. Where they do not suffice, users have as many as each other, the newest of each."""
PER_S = 20.0
"""How many connections a second of one user reach the service, after `MAX_CONNECTIONS` at once."""
_PIECE = 16 * 1024
_LAST_S = 1.0
"""How long the last answers may take to reach their readers."""


class UserRelay:
    """What users write to the socket reaches the one at `inner`, and what that writes reaches them."""

    def __init__(self, inner: Path) -> None:
        self._inner = inner
        self._allowance = Allowance(per_s=PER_S, burst=MAX_CONNECTIONS, now=time.monotonic)
        self._users: dict[asyncio.Task[None], int] = {}
        """The user of each connection, by what passes it on, the oldest first."""
        self._entrance: Entrance | None = None

    def open(self, path: Path, *, rival: str) -> None:
        """Listen at `path`, and be `rival` to who would. Raises Permanent."""
        self._entrance = Entrance(path, 0o666, self._admit, rival=rival)

    def shut(self) -> None:
        """Take no more connections."""
        if self._entrance is not None:
            self._entrance.close()

    async def end(self) -> None:
        """End the connections, once they have passed on what was answered."""
        if open_ones := set(self._users):
            await asyncio.wait(open_ones, timeout=_LAST_S)
        for each in open_ones:
            each.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)

    def _admit(self, peer: socket.socket) -> None:
        # a surplus connection must cost little: a user may open thousands a second
        _, uid = peer_of(peer)
        if sum(each == uid for each in self._users.values()) >= MAX_CONNECTIONS:
            peer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(peer, self._allowance.wait_s(uid)))
        self._users[task] = uid
        task.add_done_callback(lambda task: self._users.pop(task, None))
        for each in self._users.keys() - fair_share(self._users, MAX_CONNECTIONS):
            each.cancel()

    async def _serve(self, peer: socket.socket, wait_s: float) -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(sock=peer, limit=_PIECE)
            try:
                await asyncio.sleep(wait_s)
                inner_reader, inner_writer = await asyncio.open_unix_connection(self._inner, limit=_PIECE)
                try:
                    await run_together(_pump(reader, inner_writer), _pump(inner_reader, writer))
                finally:
                    inner_writer.close()
            finally:
                writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
