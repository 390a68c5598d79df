"""What systemd's journal is told. Needs systemd-python (the `systemd` extra)."""

import logging

import pytest

pytest.importorskip("systemd", reason="systemd-python is not installed: pip install steward-slurm[systemd]")

from steward.adapters.systemd import JournalHandler


def test_a_record_goes_to_the_journal_with_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, str] = {}
    monkeypatch.setattr("systemd.journal.send", lambda message, **fields: sent.update(fields, MESSAGE=message))
    record = logging.makeLogRecord({"msg": "drained", "levelno": logging.WARNING, "name": "x", "node": "n1", "job": 7})
    JournalHandler().emit(record)
    assert sent == {"MESSAGE": "drained", "PRIORITY": "4", "LOGGER": "x", "NODE": "n1", "JOB": "7"}
