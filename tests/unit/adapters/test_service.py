"""Log lines: one line each, who it is about first, and nothing a node says can forge another; what systemd is told."""

import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters.clock import SystemClock
from steward.adapters.log_lines import KeyValueFormatter
from steward.adapters.service import NoNotifier, SystemdNotifier, notifier
from tests.fakes.until import FACT_S


def line(message: str, **extra: object) -> str:
    record = logging.makeLogRecord({"msg": message, "levelname": "INFO", "created": 0.5, "msecs": 500.0, **extra})
    return KeyValueFormatter().format(record)


def test_node_case_and_job_come_first() -> None:
    text = line("drained", zone="x", job=7, node="n1", case="c1")
    assert text.split(" ", 1)[1] == "info node=n1 case=c1 job=7 zone=x drained"


def test_what_is_not_known_is_left_out() -> None:
    assert "node" not in line("hello", node=None)


def test_a_value_with_blanks_is_quoted() -> None:
    assert ' why="a b" ' in line("hello", why="a b")


def test_a_line_break_in_hostile_text_stays_inside_the_line() -> None:
    text = line("agent says \n2026-01-01 info all is well", node='n1"\nforged')
    assert "\n" not in text
    assert r"\n2026-01-01" in text


def test_a_traceback_follows_on_lines_of_its_own() -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        text = line("it failed", exc_info=sys.exc_info())
    assert text.splitlines()[-1] == "ZeroDivisionError"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(2.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        yield listener


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(told: socket.socket) -> None:
    service = notifier()
    service.ready()
    service.stopping()
    assert [told.recv(100), told.recv(100)] == [b"READY=1", b"STOPPING=1"]


def test_the_watchdog_is_fed_with_a_status_and_not_more_often_than_needed(told: socket.socket) -> None:
    service = notifier()
    for _ in range(10):
        service.alive("6 nodes")
    service.alive("7 nodes")
    assert told.recv(100) == b"WATCHDOG=1\nSTATUS=6 nodes"
    assert told.recv(100) == b"WATCHDOG=1\nSTATUS=7 nodes"


def test_a_service_manager_that_is_gone_or_takes_nothing_holds_nobody_up(tmp_path: Path) -> None:
    SystemdNotifier(str(tmp_path / "absent")).ready()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.bind(str(tmp_path / "full"))
        service = SystemdNotifier(str(tmp_path / "full"))
        for _ in range(3):
            fill(tmp_path / "full")
        began = time.monotonic()
        service.alive("1 node")
    assert time.monotonic() - began < FACT_S


def fill(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, contextlib.suppress(BlockingIOError):
        sock.setblocking(False)
        while True:
            sock.sendto(b"x", str(path))


def test_an_abstract_socket_of_systemds_is_written_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"steward-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}")
        listener.settimeout(FACT_S)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notifier().ready()
        assert listener.recv(100) == b"READY=1"


def test_without_a_service_manager_nobody_is_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert isinstance(notifier(), NoNotifier)


def test_a_clock_that_is_set_back_a_little_goes_slower_until_the_systems_has_caught_up() -> None:
    times = iter([100.0, 98.0, 99.0, 100.0, 102.0, 103.0])
    steady = iter([0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 5.0])
    clock = SystemClock(lambda: next(times), lambda: next(steady))
    assert [clock.now() for _ in range(6)] == [100.0, 100.0, 100.5, 101.0, 102.0, 103.0]


def test_a_clock_that_is_set_back_by_much_shows_it() -> None:
    times = iter([5000.0, 1400.0, 1401.0])
    clock = SystemClock(lambda: next(times))
    assert [clock.now() for _ in range(3)] == [5000.0, 1400.0, 1401.0]
