"""What every StorePort promises, on the fake, on SQLite and on a real MariaDB."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from steward.adapters.store import rows
from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.model.action import DrainNode, LaunchInstance
from steward.model.agent_action import Action
from steward.model.case import Case, CaseStep, Trigger
from steward.model.events import Event, Level
from steward.model.ids import CaseId, JobId, Key, NodeName
from steward.model.instance import Slot
from steward.model.ledger import Ending, Run
from steward.model.mark import Mark
from steward.model.memory import Memory
from steward.model.notify import ChannelState, Message
from steward.model.why import Why
from steward.policy.job.ledger import key_of
from steward.ports import LedgerQuery, Retryable
from tests.contract.mariadb import MariaDb
from tests.contract.store_worlds import StoreWorld, on_fake, on_mariadb, on_sqlite
from tests.fakes.store import FakeStore

WHY = Why(rule="lost", text="n1 is silent", evidence=("agent gone", "port silent"))
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
HOSTILE = "'); DROP TABLE events; --\n\x00\x1b[2J\N{PILE OF POO}"


def launch(key: str = "launch:n1:0") -> Action:
    return LaunchInstance(key=Key(key), why=WHY, slot=Slot(node=NodeName("n1"), group="g"), token="c1-0", case=CASE.id)


@pytest.fixture(params=["fake", "sqlite", "mariadb"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreWorld]:
    clock = [1000.0]
    if request.param == "fake":
        yield on_fake(clock)
    elif request.param == "sqlite":
        yield from on_sqlite(tmp_path / "steward.db", clock)
    else:
        yield from on_mariadb(request.getfixturevalue("mariadb"), clock)


def test_a_new_store_has_an_empty_memory(world: StoreWorld) -> None:
    assert world.store.load() == Memory()
    assert world.store.events() == []
    assert world.store.failures() == {}


def test_what_was_committed_is_there_after_a_restart(world: StoreWorld) -> None:
    memory = Memory(cases={CASE.id: CASE}, noted={"a": 1.5}, history={NodeName("n1"): (1.0, 2.0)}, next_case=2)
    world.store.commit(memory, [], [])

    assert world.reopen().load() == memory


def test_a_commit_replaces_what_changed_and_forgets_what_is_gone(world: StoreWorld) -> None:
    other = replace(CASE, id=CaseId("c2"))
    world.store.commit(Memory(cases={CASE.id: CASE, other.id: other}, noted={"a": 1.0}), [], [])
    later = Memory(cases={CASE.id: replace(CASE, step=CaseStep.VERIFY)}, paused=True)
    world.store.commit(later, [], [])

    assert world.reopen().load() == later


def test_an_intent_without_outcome_is_asked_again_after_a_restart(world: StoreWorld) -> None:
    done, unknown = launch("done"), launch("unknown")
    memory = Memory(asked={done.key: 1.0, unknown.key: 2.0, Key("older"): 0.5})
    world.store.commit(memory, [done, unknown], [])
    world.store.record_outcomes({done.key: ""}, 3.0)

    assert world.reopen().load().asked == {done.key: 1.0, Key("older"): 0.5}


def test_an_intent_that_was_repeated_with_an_outcome_is_not_asked_a_third_time(world: StoreWorld) -> None:
    memory = Memory(asked={launch().key: 1.0})
    world.store.commit(memory, [launch()], [])
    world.store.commit(memory, [launch()], [])
    world.store.record_outcomes({launch().key: ""}, 3.0)

    assert world.reopen().load().asked == memory.asked


def test_an_asked_key_that_was_cleared_at_load_can_be_committed_again(world: StoreWorld) -> None:
    memory = Memory(asked={launch().key: 1.0})
    world.store.commit(memory, [launch()], [])
    store = world.reopen()
    store.commit(store.load(), [], [])
    assert world.reopen().load().asked == {}

    store.commit(memory, [launch()], [])
    store.record_outcomes({launch().key: ""}, 2.0)
    assert world.reopen().load() == memory


def test_the_last_outcome_counts_as_failure_for_an_hour(world: StoreWorld) -> None:
    world.store.commit(Memory(), [launch("a"), launch("b"), launch("c")], [])
    world.store.record_outcomes({Key("a"): "capacity: none left"}, 1000.0)
    world.store.record_outcomes({Key("b"): "refused"}, 1000.0)
    world.store.commit(Memory(), [launch("b")], [])
    assert world.store.failures() == {"a": "capacity: none left", "b": "refused"}

    world.store.record_outcomes({Key("b"): ""}, 1001.0)
    assert world.reopen().failures() == {"a": "capacity: none left"}
    world.clock[0] += 3601.0
    assert world.store.failures() == {}


def test_what_ended_well_is_told_by_its_kind_for_an_hour(world: StoreWorld) -> None:
    world.store.commit(Memory(), [launch("a"), launch("b"), launch("c")], [])
    world.store.record_outcomes({Key("a"): ""}, 1000.0)
    world.store.record_outcomes({Key("b"): "refused"}, 1000.0)
    assert world.reopen().done("LaunchInstance") == {"a"}
    assert world.store.done("BackUpNode") == frozenset()

    world.clock[0] += 3601.0
    assert world.store.done("LaunchInstance") == frozenset()


def test_events_are_numbered_and_can_be_followed(world: StoreWorld) -> None:
    texts = [str(n) for n in range(7)]
    world.store.commit(Memory(), [], [Event(at=1.0, kind="x", text=text) for text in texts[:4]])
    world.store.add_events([Event(at=2.0, kind="x", text=text) for text in texts[4:]])

    newest = world.store.events(limit=3)
    assert [event.text for _, event in newest] == ["4", "5", "6"]
    first = world.store.events()[0][0]
    assert [event.text for _, event in world.store.events(after=first, limit=2)] == ["1", "2"]
    assert world.store.events(after=newest[-1][0]) == []


def test_events_of_one_node_or_job_are_found(world: StoreWorld) -> None:
    world.store.add_events([
        Event(at=1.0, kind="a", text="", node=NodeName("n1")),
        Event(at=1.0, kind="b", text="", job=JobId(7)),
        Event(at=1.0, kind="c", text="", node=NodeName("n1"), job=JobId(7)),
    ])  # fmt: skip

    assert [event.kind for _, event in world.store.events(node="n1")] == ["a", "c"]
    assert [event.kind for _, event in world.store.events(job=7)] == ["b", "c"]
    assert [event.kind for _, event in world.store.events(job=7, node="n1")] == ["c"]


def test_hostile_text_is_stored_as_text(world: StoreWorld) -> None:
    event = Event(at=1.0, kind="check.failed", text=HOSTILE, level=Level.ERROR, data=((HOSTILE, HOSTILE),))
    drain = DrainNode(key=Key(HOSTILE), why=WHY, node=NodeName("n1"), mark=Mark(check="x", action="drain", id="c1"))
    memory = Memory(noted={HOSTILE: 1.0})
    world.store.commit(memory, [drain], [event])
    world.store.record_outcomes({Key(HOSTILE): HOSTILE}, 1000.0)

    assert world.reopen().load() == memory
    assert [found for _, found in world.reopen().events()] == [event]
    assert world.reopen().failures() == {HOSTILE: HOSTILE}


def test_keys_that_differ_in_case_or_a_trailing_space_are_different_keys(world: StoreWorld) -> None:
    memory = Memory(noted={"a": 1.0, "A": 2.0, "a ": 3.0})
    world.store.commit(memory, [], [])

    assert world.reopen().load() == memory


def test_what_is_long_is_kept_whole(world: StoreWorld) -> None:
    long = Why(rule="lost", text="x" * 200_000, evidence=())
    memory = Memory(cases={CASE.id: replace(CASE, why=long)})
    event = Event(at=1.0, kind="x", text="\N{PILE OF POO}" * 50_000)
    world.store.commit(memory, [replace(launch(), why=long)], [event])

    assert world.reopen().load() == memory
    assert [found for _, found in world.reopen().events()] == [event]


def test_a_full_store_says_so_and_keeps_the_last_commit(world: StoreWorld) -> None:
    memory = Memory(cases={CASE.id: CASE})
    world.store.commit(memory, [], [])
    world.break_off()

    with pytest.raises(Retryable):
        world.store.commit(Memory(noted={str(n): float(n) for n in range(5000)}), [launch()], [])
    if not isinstance(world.store, FakeStore):
        assert world.store.load() == memory
        world.mend()
        world.store.commit(replace(memory, next_case=2), [], [])
        assert world.reopen().load() == replace(memory, next_case=2)


def test_a_memory_is_frozen_when_it_was_loaded(world: StoreWorld) -> None:
    world.store.commit(Memory(asked={Key("a"): 1.0}), [], [])

    assert isinstance(world.reopen().load().asked, MappingProxyType)


def test_what_was_used_once_is_known_until_its_time_is_over_also_after_a_restart_and_every_commit(
    world: StoreWorld,
) -> None:
    assert world.store.first_use("a" * 64, world.clock[0] + 600)
    assert not world.store.first_use("a" * 64, world.clock[0] + 600)
    assert world.store.first_use("A" * 64, world.clock[0] + 600)
    world.store.commit(Memory(), [], [])
    again = world.reopen()
    assert not again.first_use("a" * 64, world.clock[0] + 600)
    world.clock[0] += 601
    assert again.first_use("a" * 64, world.clock[0] + 600)
    assert again.load() == Memory()


def test_what_a_channel_of_notifications_remembers_outlives_a_restart_and_every_commit(world: StoreWorld) -> None:
    event = Event(at=5.0, kind="node.lost", text=HOSTILE, node=NodeName("n1"))
    message = Message(number=7, key="node.lost|n1|", last=event, level=Level.ERROR, since=5.0, count=3, trying=True)
    state = ChannelState(cursor=9, queue=(message,), sent_at={"node.lost|n1|": 5.0}, attempts=(4.0, 5.0))

    assert world.store.channel("ops") is None
    world.store.keep_channel("ops", ChannelState(cursor=1))
    world.store.keep_channel("ops", state)
    world.store.keep_channel("mail", ChannelState(cursor=2))
    world.store.commit(Memory(noted={"a": 1.0}), [], [])

    again = world.reopen()
    assert again.channel("ops") == state
    assert again.channel("mail") == ChannelState(cursor=2)
    assert again.load() == Memory(noted={"a": 1.0})


def run_of(job: int = 7, restart: int = 0, **more: Any) -> Run:
    return Run(job=JobId(job), opted_at=5.0, restart=restart, uid=1000, started=10.0 + restart * 100, **more)


def kept(world: StoreWorld, **wanted: Any) -> list[str]:
    return [key_of(line) for line in world.reopen().ledger(LedgerQuery(**wanted))]


def test_a_run_is_in_the_ledger_once_as_it_was_last_and_stays_when_memory_forgets_it(world: StoreWorld) -> None:
    first, over = run_of(), run_of(ended=90.0, ending=Ending.REQUEUED, end_text=HOSTILE.replace("\x00", ""))
    world.store.commit(Memory(ledger={JobId(7): (first,)}), [], [])
    world.store.commit(Memory(ledger={JobId(7): (over, run_of(restart=1))}), [], [])
    again = world.reopen()
    again.commit(again.load(), [], [])
    again.commit(Memory(), [], [])

    assert world.reopen().ledger(LedgerQuery()) == [over, run_of(restart=1)]


def test_a_repair_is_in_the_ledger_and_a_mere_suspicion_is_not(world: StoreWorld) -> None:
    doubt = replace(CASE, id=CaseId("c2"), step=CaseStep.SUSPECT)
    closed = replace(CASE, step=CaseStep.CLOSED, marked=6.0, closed=50.0)
    world.store.commit(Memory(cases={CASE.id: CASE, doubt.id: doubt}), [], [])
    world.store.commit(Memory(cases={CASE.id: closed, doubt.id: replace(doubt, step=CaseStep.CLOSED)}), [], [])

    assert world.reopen().ledger(LedgerQuery()) == [closed]


def test_the_ledger_is_asked_for_a_job_or_for_a_time(world: StoreWorld) -> None:
    old = (run_of(8, ended=60.0, ending=Ending.OVER),)
    long = (run_of(7, ended=90.0, ending=Ending.REQUEUED), run_of(7, restart=1, ended=150.0, ending=Ending.OVER))
    world.store.commit(Memory(ledger={JobId(7): long, JobId(8): old, JobId(9): (run_of(9, restart=2),)}), [], [])

    assert kept(world, job=8) == ["run:8.5.0.0"]
    assert kept(world, since=100.0) == ["run:7.5.0.0", "run:7.5.1.0", "run:9.5.2.0"]
    assert kept(world, until=50.0) == ["run:7.5.0.0", "run:8.5.0.0"]
    assert kept(world, limit=1) == ["run:9.5.2.0"]


def test_the_ledger_is_asked_for_a_task_of_an_array(world: StoreWorld) -> None:
    """`_` stands for any letter in SQL."""
    runs = {JobId(job): (run_of(job, task_id=task),) for job, task in ((7, "5_1"), (8, "5_12"), (9, "5x1"), (10, ""))}
    world.store.commit(Memory(cases={CASE.id: CASE}, ledger=runs), [], [])
    assert kept(world, task="5_1") == ["run:7.5.0.0"]
    assert kept(world, task="6_1") == []


def test_mariadb_takes_what_is_long(mariadb: MariaDb) -> None:
    engine = open_engine(mariadb.database())
    memory = Memory(cases={CASE.id: replace(CASE, why=replace(WHY, text="x" * 200_000))})
    SqlStore(engine).commit(memory, [], [])

    assert SqlStore(engine).load() == memory
    engine.dispose()


def test_events_of_one_kind_are_bounded_however_young_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_OF_KIND", 10)
    clock = [1000.0]
    store = SqlStore(open_engine(sqlite_url(tmp_path / "steward.db")), now=lambda: clock[0])
    store.add_events([Event(at=1000.0, kind="node.lost", text="the only one")])
    store.add_events([Event(at=1000.0, kind="job.decided", text=str(number)) for number in range(500)])
    clock[0] += 3600.0
    store.commit(Memory(), (), ())
    told = [event.text for _, event in store.events()]
    assert told == ["the only one", *(str(number) for number in range(490, 500))]


def test_lines_of_the_ledger_are_bounded_however_young_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user can have a short job that opted in every second."""
    monkeypatch.setattr(rows, "MOST_ROWS", 10)
    clock = [1000.0]
    store = SqlStore(open_engine(sqlite_url(tmp_path / "steward.db")), now=lambda: clock[0])
    runs = {JobId(job): (run_of(job, ended=60.0 + job, ending=Ending.OVER),) for job in range(1, 50)}
    store.commit(Memory(ledger=runs), (), ())
    clock[0] += 3600.0
    store.commit(Memory(), (), ())
    assert len(store.ledger(LedgerQuery(limit=100))) == 10
