"""Who at the agent serves which request of the socket."""

from steward.adapters.deep_line import DeepLine
from steward.adapters.shimline import Request
from steward.agent.deep_desk import DeepDesk
from steward.agent.desk import Desk


class Reception:
    def __init__(self, *, desk: Desk, deep: DeepDesk) -> None:
        self._desk = desk
        self._deep = deep

    async def serve(self, request: Request, peer: int) -> bytes | None:
        """The last line for who asks, or None to hang up on them."""
        if isinstance(request, DeepLine):
            return await self._deep.serve(request, peer)
        return await self._desk.serve(request, peer)
