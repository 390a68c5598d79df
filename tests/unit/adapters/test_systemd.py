"""What systemd is told, on a socket of our own. Needs systemd-python (the `systemd` extra)."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("systemd", reason="systemd-python is not installed: pip install steward-slurm[systemd]")

from steward.adapters.systemd import JournalHandler, SystemdNotifier


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(2.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        yield listener


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(told: socket.socket) -> None:
    notifier = SystemdNotifier()
    notifier.ready()
    notifier.stopping()
    assert [told.recv(100), told.recv(100)] == [b"READY=1", b"STOPPING=1"]


def test_the_watchdog_is_fed_with_a_status_and_not_more_often_than_needed(told: socket.socket) -> None:
    notifier = SystemdNotifier()
    for _ in range(10):
        notifier.alive("6 nodes")
    notifier.alive("7 nodes")
    assert told.recv(100) == b"WATCHDOG=1\nSTATUS=6 nodes"
    assert told.recv(100) == b"WATCHDOG=1\nSTATUS=7 nodes"


def test_a_record_goes_to_the_journal_with_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, str] = {}
    monkeypatch.setattr("systemd.journal.send", lambda message, **fields: sent.update(fields, MESSAGE=message))
    record = logging.makeLogRecord({"msg": "drained", "levelno": logging.WARNING, "name": "x", "node": "n1", "job": 7})
    JournalHandler().emit(record)
    assert sent == {"MESSAGE": "drained", "PRIORITY": "4", "LOGGER": "x", "NODE": "n1", "JOB": "7"}
