"""What the SQL store does beyond its contract: crashes, pruning, wrong databases."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.event import listen

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.adapters.store.tables import VERSION, metadata
from steward.model.action import AllowRequeue
from steward.model.agent_action import SetUpNode
from steward.model.events import Event
from steward.model.ids import JobId, Key, NodeName
from steward.model.memory import Memory
from steward.model.setup import Lifecycle
from steward.model.why import Why
from steward.ports import Permanent, Retryable
from tests.fakes.until import FACT_S

DAY = 86400.0
WRITER = """
import sys
from pathlib import Path
from types import MappingProxyType
from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.model.memory import Memory
store = SqlStore(open_engine(sqlite_url(Path(sys.argv[1]))))
number = store.load().next_case
while True:
    number += 1
    noted = {str(n): float(number) for n in range(20)}
    store.commit(Memory(next_case=number, noted=MappingProxyType(noted), breakers_reset=float(number)), [], [])
    print(number, flush=True)
"""


def store_in(folder: Path) -> SqlStore:
    return SqlStore(open_engine(sqlite_url(folder / "steward.db")), now=lambda: 1000.0)


def test_after_kill_9_the_memory_is_a_whole_committed_one_and_no_told_commit_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "steward.db"
    for kill in range(5):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(3 + 7 * kill)]
        os.kill(child.pid, signal.SIGKILL)
        told += [int(line) for line in child.stdout if line.endswith(b"\n")]
        child.wait(FACT_S)
        found = store_in(tmp_path).load()

        assert found.next_case in (told[-1], told[-1] + 1)
        assert set(found.noted.values()) == {float(found.next_case)} == {found.breakers_reset}


def test_a_start_that_was_killed_while_it_made_the_tables_is_gone_on_with(tmp_path: Path) -> None:
    """As MariaDB has it, which keeps each table as it is made."""
    begun = create_engine(sqlite_url(tmp_path / "steward.db"))
    VERSION.create(begun)
    metadata.create_all(begun, tables=[metadata.tables["memory"]])

    store = store_in(tmp_path)

    store.commit(Memory(next_case=2), [], [])
    assert store_in(tmp_path).load() == Memory(next_case=2)


def test_a_table_of_somebody_else_is_not_taken_for_ours(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "steward.db") as connection:
        connection.execute("CREATE TABLE events (what TEXT)")

    with pytest.raises(Retryable, match="events already exists"):
        store_in(tmp_path)
    with sqlite3.connect(tmp_path / "steward.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("events",)]


def test_a_database_of_another_revision_is_refused_by_name(tmp_path: Path) -> None:
    store_in(tmp_path)
    with sqlite3.connect(tmp_path / "steward.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(Permanent, match="revision 9999"):
        store_in(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "steward.db").write_bytes(b"not a database " * 100)

    with pytest.raises((Permanent, Retryable), match=r"steward\.db.*not a database"):
        store_in(tmp_path)


def test_a_folder_that_is_not_there_is_named_and_may_come_later(tmp_path: Path) -> None:
    with pytest.raises(Retryable, match="absent"):
        open_engine(sqlite_url(tmp_path / "absent" / "steward.db"))


def test_a_bad_url_is_refused_without_its_password() -> None:
    with pytest.raises(Permanent) as caught:
        open_engine("nosuchdb://steward:secret@db/steward")
    assert "secret" not in str(caught.value)


def test_a_locked_database_is_retryable_and_loses_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.commit(Memory(next_case=2), [], [])
    other = sqlite3.connect(tmp_path / "steward.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Retryable, match="locked"):
        store.commit(Memory(next_case=3), [], [])
    other.execute("ROLLBACK")
    store.commit(Memory(next_case=4), [], [])

    assert store_in(tmp_path).load().next_case == 4


def test_readers_see_whole_commits_while_threads_write(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.commit(Memory(), [AllowRequeue(key=Key("k"), why=Why(rule="r", text="t"), job=JobId(1))], [])

    def outcomes() -> None:
        for n in range(50):
            store.record_outcomes({Key("k"): ""}, float(n))
            store.add_events([Event(at=1.0, kind="x", text=str(n))])

    writers = [threading.Thread(target=outcomes) for _ in range(3)]
    for writer in writers:
        writer.start()
    for n in range(1, 51):
        store.commit(Memory(next_case=n, looked=float(n)), [], [])
        found = store.load()
        assert found.next_case == found.looked == n
    for writer in writers:
        writer.join()
    assert len(store.events(limit=1000)) == 150


def test_old_events_and_outcomes_are_pruned_and_numbers_are_not_used_again(tmp_path: Path) -> None:
    clock = [0.0]
    engine = open_engine(sqlite_url(tmp_path / "steward.db"))
    store = SqlStore(engine, now=lambda: clock[0], keep_s=3600.0)
    action = AllowRequeue(key=Key("k"), why=Why(rule="r", text="t"), job=JobId(1))
    store.commit(Memory(), [action], [Event(at=clock[0], kind="old", text="")])
    clock[0] = 10_000.0
    store.commit(Memory(), [], [])
    assert store.events() == []
    store.add_events([Event(at=clock[0], kind="new", text="")])

    assert [(number, event.kind) for number, event in store.events()] == [(2, "new")]
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM journal").scalar() == 0


@pytest.mark.parametrize("ahead_s", [10 * DAY, 40_000 * DAY])
def test_a_clock_that_was_ahead_does_not_stop_the_pruning(tmp_path: Path, ahead_s: float) -> None:
    """As before the first answer of NTP, on a machine whose own clock is wrong: another head goes on."""
    clock = [1_700_000_000.0 + ahead_s]
    engine = open_engine(sqlite_url(tmp_path / "steward.db"))
    store = SqlStore(engine, now=lambda: clock[0], keep_s=30 * DAY)

    def day() -> None:
        action = AllowRequeue(key=Key("k"), why=Why(rule="r", text="t"), job=JobId(1))
        store.commit(Memory(), [action], [Event(at=clock[0], kind="x", text="") for _ in range(10)])

    day()
    clock[0] -= ahead_s
    store = SqlStore(engine, now=lambda: clock[0], keep_s=30 * DAY)
    for _ in range(100):
        day()
        clock[0] += DAY
    assert len(store.events()) <= 310
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM journal").scalar() <= 31  # type: ignore[operator]


@pytest.mark.parametrize(("back_s", "is_known"), [(60.0, True), (DAY, False)])
def test_an_outcome_of_a_clock_that_was_far_ahead_does_not_count_for_ever(
    tmp_path: Path, back_s: float, is_known: bool
) -> None:
    clock = [1_700_000_000.0 + back_s]
    store = SqlStore(open_engine(sqlite_url(tmp_path / "steward.db")), now=lambda: clock[0])
    action = AllowRequeue(key=Key("k"), why=Why(rule="r", text="t"), job=JobId(1))
    for key, error in (("bad", "refused"), ("good", "")):
        store.commit(Memory(), [replace(action, key=Key(key))], [])
        store.record_outcomes({Key(key): error}, clock[0])
    clock[0] -= back_s
    assert bool(store.failures()) == is_known
    assert bool(store.done("AllowRequeue")) == is_known


def test_many_rows_of_a_clock_that_was_ahead_are_no_wall(tmp_path: Path) -> None:
    clock = [4_000_000_000.0]
    engine = open_engine(sqlite_url(tmp_path / "steward.db"))
    store = SqlStore(engine, now=lambda: clock[0], keep_s=30 * DAY)
    store.add_events([Event(at=clock[0], kind="ahead", text="") for _ in range(6000)])
    clock[0] = 1_700_000_000.0
    store = SqlStore(engine, now=lambda: clock[0], keep_s=30 * DAY)
    store.add_events([Event(at=clock[0], kind="then", text="")])
    clock[0] += 31 * DAY
    store.commit(Memory(), [], [Event(at=clock[0], kind="new", text="")])
    assert [event.kind for _, event in store.events()] == ["new"]


def test_an_order_that_holds_a_whole_cluster_is_cut_in_the_journal(tmp_path: Path) -> None:
    store = SqlStore(open_engine(sqlite_url(tmp_path / "s.db")))
    order = SetUpNode(
        key=Key("setup:n1"),
        why=Why(rule="r", text="t"),
        node=NodeName("n1"),
        token="t-0",
        lifecycle=Lifecycle(),
        timeout_s=1.0,
        resource_config="x" * 500_000,
    )
    store.commit(Memory(), [order], [])
    [body] = sqlite3.connect(tmp_path / "s.db").execute("select body from journal").fetchone()
    assert len(body) < 5000
    assert json.loads(body)["node"] == "n1"


def test_a_commit_among_thousands_of_keys_writes_and_reads_only_what_changed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    memory = Memory(asked={Key(f"k{n}"): float(n) for n in range(5000)})
    store.commit(memory, [], [])
    told: list[int] = []
    listen(
        store._engine,
        "before_cursor_execute",
        lambda _connection, _cursor, _statement, values, _context, many: told.append(len(values) if many else 1),
    )
    memory = replace(memory, asked={**memory.asked, Key("k7"): 1e6})
    action = AllowRequeue(key=Key("k7"), why=Why(rule="r", text="t"), job=JobId(1))
    store.commit(memory, [action], [Event(at=1.0, kind="x", text="")])

    assert 0 < sum(told) < 20
