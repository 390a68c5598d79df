"""Lifecycle scripts from https servers and S3 buckets, and what is tried again."""

import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
import trustme
from moto.server import ThreadedMotoServer

from steward.lifecycle.source import TRIES, fetch_source
from steward.ports import Permanent, Retryable
from tests.fakes.archives import budget, files, tar

pytestmark = pytest.mark.timeout(300)


# https


@dataclass
class Site:
    """An https server. `faults` are taken one a request: a status, or "cut" (half an answer); then `body` is served."""

    url: str = ""
    body: bytes = b""
    faults: list[int | str] = field(default_factory=list)
    requests: int = 0


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        self.site.requests += 1
        fault = self.site.faults.pop(0) if self.site.faults else 200
        if fault == "open way":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:9/scripts.tar.gz")
            self.end_headers()
            return
        self.send_response(fault if isinstance(fault, int) else 200)
        self.send_header("Content-Length", str(len(self.site.body)))
        self.end_headers()
        self.wfile.write(self.site.body[:10] if fault == "cut" else self.site.body)

    def log_message(self, format: str, *words: object) -> None:
        return


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    authority, served = trustme.CA(), Site(body=tar(("on_create.sh", b"one")))
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": served}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    served.url = f"https://127.0.0.1:{server.server_port}/scripts.tar.gz?version=3"
    yield served
    server.shutdown()
    server.server_close()


def fetched(source: str, folder: Path) -> list[float]:
    """The waits between the tries."""
    waits: list[float] = []
    fetch_source(source, folder, budget, told=lambda line: None, sleep=waits.append)
    return waits


def test_faults_of_the_network_and_the_server_are_outlasted(site: Site, tmp_path: Path) -> None:
    site.faults = [503, "cut", 429]
    assert fetched(site.url, tmp_path / "out") == [1.0, 2.0, 4.0]
    assert files(tmp_path / "out") == {"on_create.sh": "one"}


def test_an_address_that_is_wrong_is_not_tried_again(site: Site, tmp_path: Path) -> None:
    site.faults = [404]
    with pytest.raises(Permanent, match="404"):
        fetched(site.url, tmp_path / "out")
    assert site.requests == 1


def test_a_server_that_stays_away_is_given_up(tmp_path: Path) -> None:
    waits: list[float] = []
    with pytest.raises(Retryable):
        fetch_source("https://127.0.0.1:1/x", tmp_path / "out", budget, told=lambda line: None, sleep=waits.append)
    assert len(waits) <= TRIES - 1


def test_one_script_alone_is_taken_by_its_name(site: Site, tmp_path: Path) -> None:
    site.body = b"#!/bin/sh\n"
    fetched(site.url.replace("scripts.tar.gz", "on_create.sh"), tmp_path / "out")
    assert files(tmp_path / "out") == {"on_create.sh": "#!/bin/sh\n"}


def test_a_way_over_plain_http_is_refused(site: Site, tmp_path: Path) -> None:
    site.faults = ["open way"]
    with pytest.raises(Permanent, match="https"):
        fetched(site.url, tmp_path / "out")


def test_a_server_with_a_strange_certificate_is_not_believed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with pytest.raises(Permanent, match="certificate"):
        fetched(site.url, tmp_path / "out")


# s3


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="sagemaker-lab")
    for key, body in {"lc/on_create.sh": b"one", "lc/steps/10.sh": b"two", "lcx/no": b"no"}.items():
        client.put_object(Bucket="sagemaker-lab", Key=key, Body=body)
    client.put_object(Bucket="sagemaker-lab", Key="all.tgz", Body=tar(("on_create.sh", b"packed")))
    yield "s3://sagemaker-lab"
    server.stop()


@pytest.mark.parametrize("prefix", ["lc", "lc/"])
def test_all_objects_below_the_prefix_are_taken(bucket: str, tmp_path: Path, prefix: str) -> None:
    fetched(f"{bucket}/{prefix}", tmp_path / "out")
    assert files(tmp_path / "out") == {"on_create.sh": "one", "steps/10.sh": "two"}


def test_an_archive_in_a_bucket_is_unpacked(bucket: str, tmp_path: Path) -> None:
    fetched(f"{bucket}/all.tgz", tmp_path / "out")
    assert files(tmp_path / "out") == {"on_create.sh": "packed"}


@pytest.mark.parametrize("source", ["s3://sagemaker-lab/nothing", "s3://no-such-bucket-here/lc"])
def test_a_prefix_without_objects_is_told_at_once(bucket: str, tmp_path: Path, source: str) -> None:
    with pytest.raises(Permanent):
        fetched(source, tmp_path / "out")


def test_a_bucket_that_cannot_be_reached_is_tried_again(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    waits: list[float] = []
    with pytest.raises(Retryable):
        fetch_source(f"{bucket}/lc", tmp_path / "out", budget, told=lambda line: None, sleep=waits.append)
    assert len(waits) == TRIES - 1
