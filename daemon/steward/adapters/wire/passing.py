"""Pass a request over HTTP from a head that follows to the head that leads, on a connection to its port for agents.

Each request has a connection of its own. Both heads prove themselves in the handshake, and each frame carries its seal.
"""

import base64
import binascii
from collections.abc import AsyncIterator

from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Channel, Malformed, dial
from steward.adapters.wire.handshake import Hello, greet_head
from steward.adapters.wire.head_messages import (
    MAX_PIECE,
    BodyPiece,
    PassedAnswer,
    PassedRequest,
    body_frame,
    body_of,
    passed_answer_frame,
    passed_answer_of,
    passed_request_frame,
    passed_request_of,
)
from steward.adapters.wire.seal import Sealer
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.setting_types import split_host_port

MAX_BODY = 1 << 20
"""The most bytes of a request's body, which is as much as any page takes."""
_DIAL_S = 2.0
_WHO = Incarnation(instance=InstanceId("head"), boot=BootId("head"))


class HeadWay:
    """The way from this head to another one."""

    def __init__(self, sealer: Sealer, version: str) -> None:
        self._sealer, self._threads = sealer, Threads(4)
        self._hello = Hello(node=NodeName(""), incarnation=_WHO, version=version, is_head=True)

    async def open(self, head: str) -> Channel:
        """Connect to a head, by its address in `agent.head`, and shake hands.

        Raises HeadFollows if it does not lead, PortError for any other failure.
        """
        reader, writer = await dial(*split_host_port(head), self._threads, within_s=_DIAL_S)
        try:
            channel, _ = await greet_head(reader, writer, self._sealer, self._hello)
        except BaseException:
            writer.transport.abort()
            raise
        return channel


async def send_request(channel: Channel, request: PassedRequest, body: bytes) -> None:
    """Send a request. Raises Malformed, before anything is sent, if its headers are too long; PortError."""
    await channel.send(passed_request_frame(request))
    await send_body(channel, body, is_last=True)


async def read_request(channel: Channel) -> tuple[PassedRequest, bytes]:
    """Return a request and its body. Raises PortError."""
    request, body = passed_request_of(await channel.receive()), bytearray()
    async for data in pieces(channel):
        body += data
        if len(body) > MAX_BODY:
            raise Malformed(f"the body of a passed request has more than {MAX_BODY} bytes")
    return request, bytes(body)


async def send_answer(channel: Channel, answer: PassedAnswer) -> None:
    await channel.send(passed_answer_frame(answer))


async def read_answer(channel: Channel) -> PassedAnswer:
    """Return the beginning of the answer. Raises PortError."""
    return passed_answer_of(await channel.receive())


async def send_body(channel: Channel, body: bytes, *, is_last: bool) -> None:
    """Send a body, or a part of it, in pieces that fit into a frame each."""
    parts = [body[at : at + MAX_PIECE] for at in range(0, len(body), MAX_PIECE)] or [b""]
    for number, part in enumerate(parts, 1):
        ends = is_last and number == len(parts)
        await channel.send(body_frame(BodyPiece(data=base64.b64encode(part).decode(), is_last=ends)))


async def pieces(channel: Channel) -> AsyncIterator[bytes]:
    """Yield the pieces of a body until its end. Raises PortError."""
    while True:
        piece = body_of(await channel.receive())
        try:
            yield base64.b64decode(piece.data, validate=True)
        except binascii.Error:
            raise Malformed("a piece of a body is not in base64") from None
        if piece.is_last:
            return
