"""`python -m steward.nvhcd` under a real gRPC client: what NVIDIA's ft_launcher would see."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from steward.adapters import process
from steward.adapters.node.agentsock import ShimSocket
from steward.adapters.wire.shimline import Request as AgentRequest
from steward.agent.reception import VerdictDesk
from steward.checks.known import mode_of
from steward.checks.limits import Limits
from steward.model.health import Finding, Outcome, Severity
from tests.builders.nvhcd_schema import Request, Response
from tests.fakes.dialled import never_refused

LIMIT_S = 60.0
FINE = Finding(check="disk", outcome=Outcome.PASSED)
LOST = Finding(check="kernel_log.xid79", outcome=Outcome.FAILED, severity=Severity.FATAL, text="Xid 79")
NVRX_ARGS = ["--no-slurm", "--group", "prolog", "epilog", "logs", "gpu"]


def ask(path: Path, args: list[str] = NVRX_ARGS, timeout_s: float = LIMIT_S) -> Any:
    with grpc.insecure_channel(f"unix://{path}") as channel:
        call = channel.unary_unary(
            "/nvhcd.HealthCheckService/RunHealthCheck",
            request_serializer=Request.SerializeToString,
            response_deserializer=Response.FromString,
        )
        return call(Request(args=args), timeout=timeout_s)


@contextmanager
def agent(path: Path, *findings: Finding, takes_s: float = 0.0) -> Iterator[threading.Event]:
    """The agent's own socket and desk, in a thread; the event is set when it was asked."""
    asked = threading.Event()
    desk = VerdictDesk(findings=lambda: findings, known=lambda: True, mode=mode_of(Limits()))

    async def serve(_request: AgentRequest, peer: int) -> bytes:
        asked.set()
        time.sleep(takes_s)  # the whole agent stands still
        return desk.serve(peer)

    loop = asyncio.new_event_loop()
    task = loop.create_task(ShimSocket(path, serve).run())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.gather(task, return_exceptions=True)))
    thread.start()
    until(path.exists)
    try:
        yield asked
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def service() -> Iterator[Path]:
    """A folder with `nvhcd.sock`, served by a process that looks for its agent at `agent.sock` in it."""
    folder = Path(tempfile.mkdtemp(prefix="steward-nvhcd-"))  # pytest's own is closed to other users
    folder.chmod(0o755)
    with running(folder) as process:
        until(lambda: (folder / "nvhcd.sock").exists())
        yield folder
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
    shutil.rmtree(folder)


@contextmanager
def running(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    argv = [sys.executable, "-m", "steward.nvhcd"]
    argv += ["--socket", str(folder / "nvhcd.sock"), "--agent", str(folder / "agent.sock")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def until(is_so: Any) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_node_that_the_agent_knows_to_be_fine_is_healthy(service: Path) -> None:
    with agent(service / "agent.sock", FINE):
        response = ask(service / "nvhcd.sock")
    assert (response.success, response.exit_code, response.error) == (True, 0, "")
    assert json.loads(response.output) == {"fail_count": 0, "failed_checks": [], "text": "fine"}


def test_a_node_with_a_fatal_fault_is_unhealthy_and_the_fault_is_named(service: Path) -> None:
    with agent(service / "agent.sock", FINE, LOST):
        response = ask(service / "nvhcd.sock")
    assert (response.success, response.exit_code) == (False, 1)
    assert json.loads(response.output)["failed_checks"] == ["kernel_log.xid79"]
    assert json.loads(response.output)["text"] == "Xid 79"


def test_an_agent_that_is_slow_on_a_busy_machine_is_waited_for(service: Path) -> None:
    with agent(service / "agent.sock", LOST, takes_s=0.5):
        response = ask(service / "nvhcd.sock")
    assert (response.success, response.exit_code) == (False, 1)


def test_a_service_that_is_told_to_end_answers_who_waits_before(tmp_path: Path) -> None:
    with (
        agent(tmp_path / "agent.sock", LOST, takes_s=1.5) as asked,
        running(tmp_path) as process,
        ThreadPoolExecutor(1) as rank,
    ):
        until(lambda: (tmp_path / "nvhcd.sock").exists())
        waiting = rank.submit(ask, tmp_path / "nvhcd.sock")
        assert asked.wait(LIMIT_S)
        process.send_signal(signal.SIGTERM)
        assert not waiting.result(LIMIT_S).success
        assert process.wait(LIMIT_S) == 0


def test_without_an_agent_a_node_is_healthy_and_it_is_told_that_nothing_is_known(service: Path) -> None:
    response = ask(service / "nvhcd.sock")
    assert (response.success, response.exit_code) == (True, 0)
    assert json.loads(response.output)["text"].startswith("unknown: no agent answers at ")


def test_the_socket_is_not_there_before_it_is_served_and_gone_at_the_end(tmp_path: Path) -> None:
    with never_refused(tmp_path / "nvhcd.sock") as answered, running(tmp_path) as process:
        assert answered.wait(LIMIT_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
    assert not list(tmp_path.iterdir())


def test_every_user_of_the_node_may_ask(service: Path) -> None:
    assert stat.S_IMODE(os.stat(service / "nvhcd.sock").st_mode) == 0o666


def test_many_ranks_that_ask_at_once_are_all_answered(service: Path) -> None:
    with agent(service / "agent.sock", FINE), ThreadPoolExecutor(16) as ranks:
        answers = list(ranks.map(lambda _: ask(service / "nvhcd.sock"), range(64)))
    assert {one.success for one in answers} == {True}


def half_begun(calls: int) -> bytes:
    """HTTP/2 as far as the headers of so many calls, whose requests never come."""

    def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
        return len(body).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + body

    def header(name: str, value: str) -> bytes:
        return b"".join((b"\0", bytes((len(name),)), name.encode(), bytes((len(value),)), value.encode()))

    headers = {":method": "POST", ":scheme": "http", ":path": "/nvhcd.HealthCheckService/RunHealthCheck"}
    headers |= {":authority": "x", "te": "trailers", "content-type": "application/grpc"}
    block = b"".join(header(*each) for each in headers.items())
    begun = b"".join(frame(1, 4, number, block) for number in range(1, 2 * calls, 2))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + begun


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as another user")
def test_a_user_who_begins_more_calls_than_are_served_keeps_no_other_from_his_answer(service: Path) -> None:
    held = []
    os.seteuid(4242)
    try:
        for _ in range(100):
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].connect(str(service / "nvhcd.sock"))
            held[-1].sendall(half_begun(16))
    finally:
        os.seteuid(0)
    try:
        with agent(service / "agent.sock", LOST):
            assert [ask(service / "nvhcd.sock", timeout_s=5.0).exit_code for _ in range(20)] == [1] * 20
    finally:
        for each in held:
            each.close()


def test_a_request_that_is_too_long_is_refused_and_the_next_one_answered(service: Path) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        ask(service / "nvhcd.sock", ["x" * 100_000])
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert ask(service / "nvhcd.sock").success


def test_a_second_service_does_not_take_the_socket_of_a_live_one(service: Path) -> None:
    with running(service) as second:
        _, said = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 1
    assert b"another service answers" in said
    assert ask(service / "nvhcd.sock").success


def test_without_grpcio_it_says_what_to_install() -> None:
    hidden = "import runpy, sys; sys.modules['grpc'] = None; runpy.run_module('steward.nvhcd', run_name='__main__')"
    done = process.run([sys.executable, "-c", hidden], timeout_s=LIMIT_S, check=False)
    assert done.returncode == 1
    assert "pip install 'steward-slurm[nvrx]'" in done.error_text
    assert "Traceback" not in done.error_text


def test_nvidias_own_client_agrees(service: Path) -> None:
    why = "nvidia-resiliency-ext 0.6 or later, with its grpcio, is not installed"
    found = pytest.importorskip("nvidia_resiliency_ext.shared_utils.health_check", reason=why)
    if not hasattr(found, "NodeHealthCheck"):
        pytest.skip(why)
    client = found.NodeHealthCheck(endpoint=str(service / "nvhcd.sock"))
    assert client._channel_target, "its client lacks what it needs, and would take any node for healthy"
    with agent(service / "agent.sock", FINE):
        assert client() is True
    with agent(service / "agent.sock", FINE, LOST):
        until(lambda: client() is False)
    assert client() is True
