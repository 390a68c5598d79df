"""A Docker engine that keeps containers in a dict: as much of its HTTP API as the provider uses, on a unix socket."""

import io
import json
import re
import secrets
import socketserver
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Reply = tuple[int, Any]
_VERSION = re.compile(r"^/v[0-9.]+(?=/)")


@dataclass(slots=True, kw_only=True)
class FakeContainer:
    id: str
    name: str
    config: dict[str, Any]
    status: str = "created"
    starts: int = 0
    files: dict[str, bytes] = field(default_factory=dict)

    def inspect(self) -> dict[str, Any]:
        state = {"Status": self.status, "StartedAt": f"start {self.starts}"}
        return {"Id": self.id, "Name": f"/{self.name}", "State": state, "Config": {"Labels": self.config["Labels"]}}

    def summary(self) -> dict[str, Any]:
        labels = self.config["Labels"]
        return {"Id": self.id, "State": self.status, "Labels": labels, "Created": int(time.time()), "Names": []}


@dataclass(slots=True, kw_only=True)
class FakeEngine:
    """`refuse` makes every request fail with this status and message."""

    url: str
    containers: dict[str, FakeContainer] = field(default_factory=dict)
    refuse: Reply | None = None

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> Reply:
        if self.refuse is not None and not path.endswith("/version"):
            return self.refuse[0], {"message": self.refuse[1]}
        match method, _VERSION.sub("", path).split("/")[1:]:
            case "GET", ["version"]:
                return 200, {"ApiVersion": "1.41"}
            case "GET", ["containers", "json"]:
                return 200, self._listed(json.loads(query["filters"][0])["label"])
            case "POST", ["containers", "create"]:
                return self._create(query["name"][0], json.loads(body))
            case _, ["containers", key, *rest]:
                return self._one(method, key, rest, query, body)
        return 404, {"message": f"no such page: {method} {path}"}

    def _listed(self, labels: list[str]) -> list[dict[str, Any]]:
        def fits(each: FakeContainer) -> bool:
            have = each.config["Labels"]
            words = (label.partition("=") for label in labels)
            return all(name in have and value in ("", have[name]) for name, _, value in words)

        return [each.summary() for each in self.containers.values() if fits(each)]

    def _create(self, name: str, config: dict[str, Any]) -> Reply:
        if any(each.name == name for each in self.containers.values()):
            return 409, {"message": f"the name {name} is in use"}
        made = FakeContainer(id=secrets.token_hex(32), name=name, config=config)
        self.containers[made.id] = made
        return 201, {"Id": made.id}

    def _one(self, method: str, key: str, rest: list[str], query: dict[str, list[str]], body: bytes) -> Reply:
        found = [each for each in self.containers.values() if each.name == key or each.id.startswith(key)]
        if not found:
            return 404, {"message": f"no such container: {key}"}
        container = found[0]
        match method, rest:
            case "GET", ["json"]:
                return 200, container.inspect()
            case "POST", ["start"]:
                container.status, container.starts = "running", container.starts + 1
                return 204, None
            case "POST", ["kill"]:
                container.status = "exited"
                return 204, None
            case "POST", ["wait"]:
                return 200, {"StatusCode": 137}
            case "DELETE", []:
                del self.containers[container.id]
                return 204, None
            case "PUT", ["archive"]:
                container.files |= _unpacked(query["path"][0], body)
                return 200, None
            case "GET", ["archive"]:
                path = query["path"][0]
                kept = container.files.get(path)
                return (404, {"message": f"no such file: {path}"}) if kept is None else (200, _packed(path, kept))
        return 404, {"message": f"no such page: {method} {rest}"}


def _unpacked(folder: str, data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {f"{folder}/{name}": file.read() for name, file in files.items() if file is not None}


def _packed(path: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo(Path(path).name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


@contextmanager
def fake_engine(directory: Path) -> Iterator[FakeEngine]:
    """One that answers until the end of the block."""
    place = directory / "engine.sock"
    engine = FakeEngine(url=f"unix://{place}")

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(place), _handler(engine.answer)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield engine
        server.shutdown()
        thread.join()


def _handler(answer: Callable[[str, str, dict[str, list[str]], bytes], Reply]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            page = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said = answer(self.command, unquote(page.path), parse_qs(page.query), body)
            data = said if isinstance(said, bytes) else b"" if said is None else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Docker-Container-Path-Stat", "e30=")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def address_string(self) -> str:
            return "unix"

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler
