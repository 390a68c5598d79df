"""Lifecycle scripts are fetched whole, from where they are kept, into their folder and nowhere else."""

import hashlib
import io
import os
import ssl
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
import trustme
from moto.server import ThreadedMotoServer

from steward.adapters.fetch.budget import Budget, TimeOver, inside
from steward.adapters.fetch.digest import digest
from steward.adapters.fetch.file import fetch_file
from steward.adapters.fetch.unpack import unpack
from steward.lifecycle.source import TRIES, fetch
from steward.ports import Permanent, Retryable

pytestmark = pytest.mark.timeout(60)


def budget(*, bytes_left: int = 1 << 20, files_left: int = 100) -> Budget:
    return Budget(deadline=time.monotonic() + 1000, bytes_left=bytes_left, files_left=files_left)


def tar(*members: tuple[str, bytes], links: tuple[tuple[str, str], ...] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return out.getvalue()


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


# Archives and folders


def test_a_tar_is_unpacked_with_its_modes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(("on_create.sh", b"one"), ("steps/10.sh", b"two")))
    unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")
    assert files(tmp_path / "out") == {"on_create.sh": "one", "steps/10.sh": "two"}
    assert os.access(tmp_path / "out/on_create.sh", os.X_OK)


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("on_create.sh", "one")
        archive.writestr("steps/10.sh", "two")
    unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")
    assert files(tmp_path / "out") == {"on_create.sh": "one", "steps/10.sh": "two"}


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_bytes(tar((name, b"evil")))
    with pytest.raises(Permanent, match="is not a path inside"):
        unpack(tmp_path / "a", tmp_path / "x/out", budget(), single="a")
    assert not list(tmp_path.rglob("evil"))


def test_a_link_in_an_archive_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(links=(("here", "/etc"),)))
    with pytest.raises(Permanent, match="is a link"):
        unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")


def test_a_broken_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(("on_create.sh", b"one" * 9999))[:-40])
    with pytest.raises(Permanent, match="cannot be unpacked"):
        unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")


def test_what_is_larger_than_allowed_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(("big", b"\0" * 5_000_000)))
    with pytest.raises(Permanent, match="larger"):
        unpack(tmp_path / "a", tmp_path / "out", budget(bytes_left=100_000), single="a")
    assert (tmp_path / "out/big").stat().st_size <= 100_000


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(*((str(number), b"") for number in range(5))))
    with pytest.raises(Permanent, match="more files"):
        unpack(tmp_path / "a", tmp_path / "out", budget(files_left=4), single="a")


def test_a_fetch_ends_at_the_deadline(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a").write_text("a")
    with pytest.raises(TimeOver):
        fetch_file((tmp_path / "src").as_uri(), tmp_path / "out", Budget(deadline=time.monotonic()))


def test_links_that_leave_the_folder_are_refused_and_others_followed(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "a").write_text("a")
    (source / "b").symlink_to("a")
    fetch_file(source.as_uri(), tmp_path / "out", budget())
    assert files(tmp_path / "out") == {"a": "a", "b": "a"}
    (source / "c").symlink_to("/etc/passwd")
    with pytest.raises(Permanent, match="is no file of the folder"):
        fetch_file(source.as_uri(), tmp_path / "out", budget())


def test_a_folder_that_is_not_mounted_yet_is_waited_for(tmp_path: Path) -> None:
    source, waits = tmp_path / "src", list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            source.mkdir()
            (source / "a").write_text("a")

    fetch(source.as_uri(), tmp_path / "out", budget, told=lambda line: None, sleep=sleep)
    assert waits == [1.0, 2.0, 4.0]
    assert files(tmp_path / "out") == {"a": "a"}


def test_an_unknown_kind_of_source_is_told_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="file://, https://, s3://"):
        fetch("http://x/y", tmp_path / "out", budget, told=lambda line: None)


def test_the_digest_is_that_of_names_sizes_and_contents_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "steps").mkdir(parents=True)
        (tmp_path / name / "b.sh").write_text("b")
        (tmp_path / name / "steps/a.sh").write_text("a")
    (tmp_path / "two/b.sh").chmod(0o700)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    known = b"b.sh\x001\x00bsteps/a.sh\x001\x00a"
    assert digest(tmp_path / "one") == hashlib.sha256(known).hexdigest()
    (tmp_path / "two/b.sh").rename(tmp_path / "two/c.sh")
    assert digest(tmp_path / "one") != digest(tmp_path / "two")


def test_an_empty_name_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(Permanent):
        inside(tmp_path, "")


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
    threading.Thread(target=server.serve_forever, daemon=True).start()
    served.url = f"https://127.0.0.1:{server.server_port}/scripts.tar.gz?version=3"
    yield served
    server.shutdown()
    server.server_close()


def fetched(source: str, folder: Path) -> list[float]:
    """The waits between the tries."""
    waits: list[float] = []
    fetch(source, folder, budget, told=lambda line: None, sleep=waits.append)
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
        fetch("https://127.0.0.1:1/x", tmp_path / "out", budget, told=lambda line: None, sleep=waits.append)
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
        fetch(f"{bucket}/lc", tmp_path / "out", budget, told=lambda line: None, sleep=waits.append)
    assert len(waits) == TRIES - 1
