"""The state of one head, moved to the database that two heads share: nothing is lost, and nothing is mixed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.move import move
from steward.adapters.store.sql import SqlStore, StoredText
from steward.model.action import LaunchInstance
from steward.model.case import Case, CaseStep, Trigger
from steward.model.events import Event
from steward.model.ids import CaseId, Key, NodeName
from steward.model.instance import Slot
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.model.why import Why
from steward.ports import LedgerQuery, Permanent, Retryable

WHY = Why(rule="lost", text="n1 is silent \N{PILE OF POO}", evidence=("agent gone",))
CASE = Case(
    id=CaseId("c1"),
    node=NodeName("n1"),
    trigger=Trigger.LOST,
    check="agent",
    step=CaseStep.LAUNCH,
    entered=5.0,
    opened=1.0,
    why=WHY,
)
LAUNCH = LaunchInstance(
    key=Key("launch:n1:0"), why=WHY, slot=Slot(node=NodeName("n1"), group="g"), token="c1-0", case=CASE.id
)


@pytest.fixture(params=["sqlite", "mariadb"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    is_sqlite = request.param == "sqlite"
    url = sqlite_url(tmp_path / "shared.db") if is_sqlite else request.getfixturevalue("mariadb").database()
    engine = open_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(sqlite_url(tmp_path / "steward.db"))
    store = SqlStore(engine, now=lambda: 1000.0)
    store.commit(Memory(cases={CASE.id: CASE}, next_case=2, asked={LAUNCH.key: 5.0}), [LAUNCH], [])
    store.add_events([Event(at=float(number), kind="x", text=f"event {number}") for number in range(2500)])
    store.keep_channel("mail", ChannelState(cursor=7))
    yield engine
    engine.dispose()


def _at(engine: Engine) -> SqlStore:
    return SqlStore(engine, now=lambda: 1000.0)


def test_memory_open_intents_events_ledger_and_channels_are_the_same_after_the_move(
    source: Engine, target: Engine
) -> None:
    counts = move(source, target, {"static.json": '{"loans": [], "reboots": ["t"]}'})

    before, after = _at(source), _at(target)
    assert counts["events"] == 2500
    assert after.load() == before.load()
    assert after.events(limit=5000) == before.events(limit=5000)
    assert after.ledger(LedgerQuery()) == before.ledger(LedgerQuery())
    assert after.channel("mail") == ChannelState(cursor=7)
    assert StoredText(after, "static.json").read() == '{"loans": [], "reboots": ["t"]}'


def test_what_is_written_after_the_move_comes_after_what_was_moved(source: Engine, target: Engine) -> None:
    move(source, target, {})

    _at(target).add_events([Event(at=1.0, kind="x", text="new")])

    assert [event.text for _, event in _at(target).events(limit=2)] == ["event 2499", "new"]


def test_a_database_with_a_state_is_refused_and_stays_as_it_is(source: Engine, target: Engine) -> None:
    _at(target).commit(Memory(next_case=9), [], [])

    with pytest.raises(Permanent, match="holds a state already"):
        move(source, target, {})

    assert _at(target).load() == Memory(next_case=9)


def test_a_move_that_fails_half_way_leaves_the_database_empty(source: Engine, target: Engine) -> None:
    with source.begin() as connection:
        connection.exec_driver_sql("DROP TABLE ledger")

    with pytest.raises(Retryable, match="nothing was moved"):
        move(source, target, {})

    assert _at(target).load() == Memory()
    assert _at(target).events() == []
