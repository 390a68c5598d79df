"""Who at the agent serves which request of the socket."""

from steward.adapters.wire.deep_line import DeepLine
from steward.adapters.wire.shimline import Request
from steward.adapters.wire.verdict_line import VerdictLine
from steward.agent.deep_desk import DeepDesk
from steward.agent.desk import Desk
from steward.agent.verdict_desk import VerdictDesk


class Reception:
    def __init__(self, *, desk: Desk, deep: DeepDesk, verdict: VerdictDesk) -> None:
        self._desk = desk
        self._deep = deep
        self._verdict = verdict

    async def serve(self, request: Request, peer: int) -> bytes | None:
        """The last line for who asks, or None to hang up on them."""
        match request:
            case VerdictLine():
                return self._verdict.serve(peer)
            case DeepLine():
                return await self._deep.serve(request, peer)
            case _:
                return await self._desk.serve(request, peer)
