"""The head's HTTP server: TLS where a certificate is configured."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from email.utils import parsedate_to_datetime
from pathlib import Path

import boto3
import pytest
import requests
import trustme
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from steward.client import Client, Unreachable
from steward.head.serve import MAX_CONNECTIONS, SHARE, http_server
from steward.model.settings.sections import ApiSettings
from steward.ports import Permanent
from tests.fakes.aws_bench import KEY, REGION, AwsBench
from tests.fakes.munge import FakeMunge
from tests.fakes.serving import serving
from tests.fakes.until import FACT_S


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A certificate authority's own certificate; `cert.pem` and `key.pem` beside it are for 127.0.0.1."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own = made.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for blob in own.cert_chain_pems:
        blob.write_to_path(str(tmp_path / "cert.pem"), append=True)
    return tmp_path / "ca.pem"


def api(directory: Path) -> ApiSettings:
    return ApiSettings(tls_certificate=directory / "cert.pem", tls_key=directory / "key.pem")


def app(bench: AwsBench) -> Starlette:
    bench.handlers["ListClusters"] = lambda _caller, _members: {"ClusterSummaries": []}
    return Starlette(routes=[Route("/", bench.endpoint().serve, methods=["POST"])])


def test_aws_clients_and_our_own_reach_it_over_tls(authority: Path) -> None:
    bench = AwsBench()
    with serving(http_server(app(bench), api(authority.parent)), "https") as url:
        boto = boto3.client(
            "sagemaker",
            endpoint_url=url,
            region_name=REGION,
            aws_access_key_id=KEY.id,
            aws_secret_access_key=KEY.secret,
            verify=str(authority),
        )
        assert boto.list_clusters()["ClusterSummaries"] == []
        ours = Client(url, FakeMunge(bench.munged).encode, ca=str(authority))
        assert ours.operate("ListClusters", {}) == {"ClusterSummaries": []}


def test_our_client_does_not_talk_to_a_head_that_it_cannot_verify(authority: Path) -> None:
    bench = AwsBench()
    with (
        serving(http_server(app(bench), api(authority.parent)), "https") as url,
        pytest.raises(Unreachable, match="certificate"),
    ):
        Client(url, FakeMunge(bench.munged).encode).operate("ListClusters", {})


def test_a_certificate_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match=r"api\.tls_certificate .*No such file.*PEM files that SlurmUser can read"):
        http_server(Starlette(), api(tmp_path))


def test_a_key_that_is_not_the_certificates_is_told(authority: Path, tmp_path: Path) -> None:
    trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    with pytest.raises(Permanent, match="MISMATCH"):
        http_server(Starlette(), api(tmp_path))


def test_who_connects_and_asks_nothing_whole_is_hung_up_on() -> None:
    served = serving(http_server(app(AwsBench()), ApiSettings(), idle_s=0.3))
    with served as url, connected(url) as silent, connected(url) as dripping:
        with suppress(ConnectionError):  # hung up on already
            dripping.sendall(b"POST / HTTP/1.1\r\nHost: head\r\n")
        assert (ended(silent), ended(dripping)) == (True, True)


HOLD = """
import os, socket, sys
os.setgid(65533), os.setuid(65533)
held = [socket.socket() for _ in range(int(sys.argv[2]))]
for one in held:
    one.connect(("127.0.0.1", int(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_a_user_who_holds_more_connections_than_his_share_keeps_nobody_else_out() -> None:
    with serving(http_server(app(bench := AwsBench()), ApiSettings())) as url:
        argv = [sys.executable, "-I", "-c", HOLD, url.rpartition(":")[2], str(MAX_CONNECTIONS + 50)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
            assert flood.stdout is not None
            assert flood.stdout.readline() == "held\n"
            assert Client(url, FakeMunge(bench.munged).encode).operate("ListClusters", {}) == {"ClusterSummaries": []}
            flood.communicate("")


def test_a_connection_beyond_its_peers_share_is_hung_up_on() -> None:
    with serving(http_server(app(AwsBench()), ApiSettings())) as url, ExitStack() as stack:
        for _ in range(SHARE):
            stack.enter_context(connected(url))
        assert ended(stack.enter_context(connected(url)))


def connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=FACT_S)


def ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_an_answer_has_its_date_and_an_idle_server_does_nothing() -> None:
    """uvicorn's own loop wakes ten times a second."""
    server = http_server(Starlette(routes=[Route("/", lambda _request: Response())]), ApiSettings())
    with serving(server) as url:
        for _ in range(2):
            asked_at = time.time()
            told = parsedate_to_datetime(requests.get(url, timeout=FACT_S).headers["date"]).timestamp()
            assert asked_at - 1.5 < told <= time.time()
            before = switches()
            time.sleep(2.0)
            assert switches() - before < 10


def switches() -> int:
    """Return how often threads of this process but this one were woken."""
    tasks = [one for one in Path("/proc/self/task").iterdir() if int(one.name) != threading.get_native_id()]
    lines = (line for task in tasks for line in (task / "status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
