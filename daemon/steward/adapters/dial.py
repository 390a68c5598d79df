"""TCP connections whose name look-up and set-up are bounded and never hold up an exit."""

import asyncio
import socket

from steward.adapters.offload import Threads
from steward.adapters.wire.frames import MAX_FRAME, Gone

DIAL_TIMEOUT_S = 5.0


async def dial(host: str, port: int, threads: Threads) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of `host` that answers. Raises Retryable, with the last reason."""
    try:
        found = await threads.call(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), name="resolve", timeout_s=DIAL_TIMEOUT_S
        )
    except OSError as error:
        raise Gone(f"the head's name {host!r} cannot be resolved: {error}") from None
    why = "it has no address"
    for *_, address in found:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                return await asyncio.open_connection(str(address[0]), port, limit=MAX_FRAME + 4)
        except (OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
    raise Gone(f"no head at {host}:{port}: {why}")
