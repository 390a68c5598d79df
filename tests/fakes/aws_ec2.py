"""EC2 for tests: moto's server, spoken to over HTTP, with what moto lacks laid over it.

Laid over: a client token gives its first answer again, and is refused with other words (moto keeps the token and makes
another instance); refusals that a test asks for; spot requests of instances that RunInstances made (moto makes none).
"""

import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import requests
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Words = dict[str, str]
Start = Callable[..., Any]
Refusal = tuple[int, str, str]
"""HTTP status, EC2's code, message."""
_PER_CALL = ("ClientToken", "Version", "Action")
NONE_LEFT = [
    f"Insufficient{of}" for of in ("InstanceCapacity", "FreeAddressesInSubnet", "VolumeCapacity", "CapacityOnHost")
] + ["InsufficientAddressCapacity", "UnfulfillableCapacity"]
LIMITS = [
    f"{of}Exceeded"
    for of in ("InstanceLimit", "VcpuLimit", "MaxSpotInstanceCount", "NetworkInterfaceLimit", "AddressLimit")
]
"""What AWS says where there is nothing to be had, and where an account may have no more."""


@dataclass(kw_only=True)
class FakeEc2:
    """`refuse` decides about each request from its words; `calls` are the words of every request."""

    url: str = ""
    calls: list[Words] = field(default_factory=list)
    refuse: Callable[[Words], Refusal | None] = lambda words: None
    lose_answers: bool = False
    """RunInstances does its work, and its answer never arrives."""
    lists_lag: bool = False
    """No list shows anything, as just after a launch."""
    spot: dict[str, str] = field(default_factory=dict)
    """Instance id -> status code of its spot request."""
    answers: dict[str, tuple[Words, bytes]] = field(default_factory=dict)

    def of(self, action: str) -> list[Words]:
        return [words for words in self.calls if words["Action"] == action]

    def answer(self, words: Words, ask_moto: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        self.calls.append(words)
        if (refusal := self.refuse(words)) is not None:
            return refusal[0], _error(refusal[1], refusal[2])
        if words["Action"] == "DescribeInstances" and self.lists_lag:
            return 200, b"<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>"
        if words["Action"] == "DescribeSpotInstanceRequests":
            return 200, _spot_requests(self.spot)
        if words["Action"] != "RunInstances":
            return ask_moto()
        return self._run(words, ask_moto)

    def _run(self, words: Words, ask_moto: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        said = {name: word for name, word in words.items() if name not in _PER_CALL}
        before = self.answers.get(words["ClientToken"])
        if before is not None and before[0] != said:
            return 400, _error("IdempotentParameterMismatch", "the words are others")
        status, body = (200, before[1]) if before is not None else ask_moto()
        if status == 200:
            self.answers[words["ClientToken"]] = (said, body)
        return (503, b"") if self.lose_answers else (status, body)


class _Front:
    """A WSGI application before moto's."""

    def __init__(self, fake: FakeEc2) -> None:
        self._fake = fake
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        words = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if "Action" not in words:  # moto's own calls
            return self._pass_on(environ, body, start)
        held: list[tuple[str, list[tuple[str, str]]]] = []

        def ask_moto() -> tuple[int, bytes]:
            text = b"".join(self._pass_on(environ, body, lambda status, headers, *_: held.append((status, headers))))
            return int(held[-1][0].split()[0]), text

        status, text = self._fake.answer(words, ask_moto)
        start(f"{status} said", [("Content-Type", "text/xml"), ("Content-Length", str(len(text)))])
        return [text]

    def _pass_on(self, environ: dict[str, Any], body: bytes, start: Start) -> Iterable[bytes]:
        answer: Iterable[bytes] = self._moto({**environ, "wsgi.input": io.BytesIO(body)}, start)
        return answer


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing: a test's output is its own."""


@contextmanager
def fake_ec2() -> Iterator[FakeEc2]:
    """An empty EC2 in a thread of its own, on a free port."""
    fake = FakeEc2()
    server = make_server("127.0.0.1", 0, _Front(fake), threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="fake-ec2", daemon=True)
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        requests.post(f"{fake.url}/moto-api/reset", timeout=60).raise_for_status()
        yield fake
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _error(code: str, message: str) -> bytes:
    text = f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>"
    return text.encode()


def _spot_requests(spot: dict[str, str]) -> bytes:
    items = "".join(
        f"<item><instanceId>{instance}</instanceId><status><code>{code}</code><message>two minutes left</message>"
        "</status></item>"
        for instance, code in spot.items()
    )
    text = f"<DescribeSpotInstanceRequestsResponse><spotInstanceRequestSet>{items}</spotInstanceRequestSet>"
    return f"{text}</DescribeSpotInstanceRequestsResponse>".encode()
