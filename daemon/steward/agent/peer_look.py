"""On the head's order: look whether another node's slurmd answers, and tell. The head alone may be cut off from it."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.peer_messages import LookOrder, looked_frame
from steward.model.ids import NodeName
from steward.model.observed import WitnessSeen
from steward.ports import PortError

AT_ONCE = 16
"""More are not looked at: no word is better than a late one."""
_TIMEOUT_S = 10.0


class Head(Protocol):
    def post(self, frame: Frame) -> None: ...


class PeerLook:
    def __init__(self, look: Callable[[str, int], WitnessSeen], *, head: Head, threads: Threads) -> None:
        """`look` at an address and port blocks for some seconds."""
        self._look, self._head, self._threads = look, head, threads
        self._tasks: dict[NodeName, asyncio.Task[None]] = {}

    def obey(self, order: LookOrder) -> None:
        """Begin, unless this node is looked at just now; never blocks."""
        if order.node not in self._tasks and len(self._tasks) < AT_ONCE:
            self._tasks[order.node] = asyncio.get_running_loop().create_task(self._tell(order))
            self._tasks[order.node].add_done_callback(lambda _: self._tasks.pop(order.node, None))

    async def rest(self) -> None:
        """Until nothing is being looked at."""
        await asyncio.gather(*self._tasks.values())

    async def _tell(self, order: LookOrder) -> None:
        try:
            seen = await self._threads.call(
                lambda: self._look(order.address, order.port), name=f"look at {order.node}", timeout_s=_TIMEOUT_S
            )
        except (PortError, OSError):
            return  # nothing was found out
        self._head.post(looked_frame(order.node, seen.result))
