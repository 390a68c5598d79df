"""The gRPC service at a unix socket. Every user of the node may ask, and all that he is told is the node's verdict."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from steward.adapters.socket_path import make_free
from steward.adapters.wire.nvhcd_messages import METHOD, SERVICE, packed
from steward.adapters.wire.verdict_ask import LIMIT_S, ask_verdict
from steward.nvhcd.response import response_to

THREADS = 8
MAX_WAITING = 64
"""Calls at once; more are refused at once, and a client that is refused takes its node for healthy."""
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 * 1024),
    ("grpc.max_metadata_size", 8 * 1024),
    ("grpc.max_concurrent_streams", 2 * MAX_WAITING),  # at the limit a stream is cut off, also one that was announced
    ("grpc.max_connection_idle_ms", 30_000),
)


class HealthService:
    """Listens at `path` from `start()` until `stop()`. What is in a request makes no difference: it is not read."""

    def __init__(self, path: Path, agent: Path) -> None:
        self._path = path
        self._agent = agent
        self._server = grpc.server(
            ThreadPoolExecutor(THREADS, thread_name_prefix="nvhcd"),
            options=_OPTIONS,
            maximum_concurrent_rpcs=MAX_WAITING,
        )
        answer = grpc.unary_unary_rpc_method_handler(self._answer)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: answer}),))

    def start(self) -> None:
        """Raises OSError when the socket cannot be made. One that nobody answers is replaced."""
        make_free(self._path, rival=f"service answers at {self._path}: stop it first, or use another --socket")
        try:
            self._server.add_insecure_port(f"unix://{self._path}")
        except RuntimeError as error:
            raise OSError(str(error)) from error
        self._path.chmod(0o666)
        self._server.start()

    def stop(self) -> None:
        """Calls that wait are answered before."""
        self._server.stop(grace=LIMIT_S + 0.5).wait()

    def _answer(self, _request: bytes, _context: object) -> bytes:
        return packed(response_to(ask_verdict(self._agent)))
