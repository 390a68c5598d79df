"""The gRPC service at a unix socket. Every user of the node may ask, and learns the node's verdict and nothing else.

The answer of the protocol `nvhcd` (docs/hooks.md) is encoded here by hand, without a compiler of schemas:
message HealthCheckResponse { bool success = 1; int32 exit_code = 2; string output = 3; string error = 4; }
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc
import grpc.aio

from steward.adapters.socket_path import make_free
from steward.adapters.wire.verdict_line import LIMIT_S, Bad, Fine, Unknown, Verdict, ask_verdict
from steward.nvhcd.relay import UserRelay

SERVICE = "nvhcd.HealthCheckService"
METHOD = "RunHealthCheck"

_SUCCESS, _EXIT_CODE, _OUTPUT, _ERROR = 1, 2, 3, 4
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckResponse:
    """An answer to ft_launcher. `exit_code` is 0 to 255; `output` is JSON, read by the client if `success` is set."""

    success: bool
    exit_code: int
    output: str
    error: str = ""


def packed(response: HealthCheckResponse) -> bytes:
    """Return the response in proto3's encoding, in which a field with its default value is left out."""
    return b"".join(
        (
            _number(_SUCCESS, int(response.success)),
            _number(_EXIT_CODE, response.exit_code),
            _text(_OUTPUT, response.output),
            _text(_ERROR, response.error),
        )
    )


def _number(field: int, value: int) -> bytes:
    return _tag(field, _VARINT) + _varint(value) if value else b""


def _text(field: int, text: str) -> bytes:
    content = text.encode()
    return _tag(field, _BYTES) + _varint(len(content)) + content if content else b""


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    """Return the number as a varint: seven bits a byte, the lowest first; the eighth bit marks all but the last."""
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)


MAX_CALLS = 64
"""The most parallel calls of one connection; a client that keeps to the protocol waits with any more."""
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 * 1024),
    ("grpc.max_metadata_size", 8 * 1024),
    ("grpc.max_concurrent_streams", 2 * MAX_CALLS),  # at the limit even an announced stream is cut off
    ("grpc.max_connection_idle_ms", 30_000),
)


class SharedVerdict:
    """The agent's verdict, asked for once on behalf of all who came since the question before.

    So who asks often neither holds up others nor uses up what the agent answers this service.
    """

    def __init__(self, ask: Callable[[], Verdict]) -> None:
        self._ask = ask
        self._asked: asyncio.Task[Verdict] | None = None
        self._next: asyncio.Task[Verdict] | None = None

    async def now(self) -> Verdict:
        """Return the answer to a question that was asked after this call began."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._after(self._asked))
        return await asyncio.shield(self._next)

    async def _after(self, before: "asyncio.Task[Verdict] | None") -> Verdict:
        if before is not None:
            await asyncio.wait((before,))
        self._asked, self._next = self._next, None
        return await asyncio.to_thread(self._ask)


class HealthService:
    """The service at `path`, from `start()` until `stop()`. The content of a request is not read."""

    def __init__(self, path: Path, agent: Path) -> None:
        self._path = path
        self._inner = path.with_name(f"{path.name}.own")
        self._verdict = SharedVerdict(partial(ask_verdict, agent))
        self._relay = UserRelay(self._inner)
        self._server = grpc.aio.server(options=_OPTIONS)
        answer = grpc.unary_unary_rpc_method_handler(self._answer)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: answer}),))

    async def start(self) -> None:
        """Start the service; an unused socket file is replaced. Raises OSError, Permanent if it cannot be made."""
        rival = f"service answers at {self._path}: stop it first, or use another --socket"
        make_free(self._path, rival=rival)  # before the other socket, which may be a rival's
        self._inner.unlink(missing_ok=True)
        try:
            self._server.add_insecure_port(f"unix://{self._inner}")
        except RuntimeError as error:
            raise OSError(str(error)) from error
        self._inner.chmod(0o600)
        await self._server.start()
        self._relay.open(self._path, rival=rival)

    async def stop(self) -> None:
        """Stop the service, after calls that wait are answered."""
        self._relay.shut()
        await self._server.stop(grace=LIMIT_S + 0.5)
        await self._relay.end()
        self._inner.unlink(missing_ok=True)

    async def _answer(self, _request: bytes, _context: object) -> bytes:
        return packed(response_to(await self._verdict.now()))


def response_to(verdict: Verdict) -> HealthCheckResponse:
    """Return the answer to ft_launcher: unhealthy only for a severity that takes a node out of service."""
    # The client parses `output`: without a `fail_count`, NVRx 0.6 takes the node for unhealthy, 0.7 for healthy.
    match verdict:
        case Bad(severity=severity, check=check, text=text) if severity.takes_out:
            said = {"fail_count": 1, "failed_checks": [check], "severity": severity.value, "text": text}
            return HealthCheckResponse(success=False, exit_code=1, output=json.dumps(said))
        case Bad(severity=severity, check=check, text=text):
            return _healthy(f"{severity.value}: {check}: {text}")
        case Fine():
            return _healthy("fine")
        case Unknown(why=why):
            return _healthy(f"unknown: {why}")


def _healthy(text: str) -> HealthCheckResponse:
    output = json.dumps({"fail_count": 0, "failed_checks": [], "text": text})
    return HealthCheckResponse(success=True, exit_code=0, output=output)
