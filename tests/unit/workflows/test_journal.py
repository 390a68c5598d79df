"""Outcomes that come while the cycle reads those before them are read the next time, also after a store that failed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from steward.model.action import BackUpNode, DrainNode, SignalJob
from steward.model.ids import CaseId, InstanceId, JobId, Key, NodeName
from steward.model.mark import Mark
from steward.model.memory import Memory
from steward.model.why import Why
from steward.ports import Retryable
from steward.workflows.journal import Journal
from tests.fakes.clock import FakeClock
from tests.fakes.store import FakeStore


@dataclass(kw_only=True)
class BusyStore(FakeStore):
    """`meanwhile` happens, once, after its answer has been found and before it is given."""

    meanwhile: list[Callable[[], None]] = field(default_factory=list)

    def done(self, kind: str) -> frozenset[str]:
        found = super().done(kind)
        self._let_happen()
        return found

    def failures(self) -> Mapping[str, str]:
        found = dict(super().failures())
        self._let_happen()
        return found

    def _let_happen(self) -> None:
        while self.meanwhile:
            self.meanwhile.pop()()


@dataclass
class Bench:
    store: BusyStore = field(default_factory=BusyStore)

    def __post_init__(self) -> None:
        self.journal = Journal(self.store, FakeClock(), lambda kind, outcome: None)

    def backup(self, name: str, error: str = "") -> None:
        """Of a node, from its intent to its outcome."""
        why = Why(rule="slot.backup", text="t")
        action = BackUpNode(key=Key(name), why=why, node=NodeName(name), instance=InstanceId(f"i-{name}"))
        self.store.commit(Memory(), [action], ())
        self.journal.record([(action, error)])


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_backup_that_ends_while_the_others_are_read_is_read_next(bench: Bench) -> None:
    bench.backup("n1")
    bench.store.meanwhile.append(lambda: bench.backup("n2"))
    bench.journal.done()
    assert bench.journal.done() == {"n1", "n2"}


def test_a_failure_that_comes_while_the_others_are_read_is_read_next(bench: Bench) -> None:
    bench.backup("n1", "no room")
    bench.store.meanwhile.append(lambda: bench.backup("n2", "no way"))
    bench.journal.failures()
    assert bench.journal.failures() == {"n1": "no room", "n2": "no way"}


@pytest.mark.parametrize("read", [Journal.done, Journal.failures])
def test_what_a_store_could_not_tell_is_read_again(bench: Bench, read: Callable[[Journal], object]) -> None:
    bench.journal.done(), bench.journal.failures()
    bench.backup("n1")
    bench.backup("n2", "no room")
    bench.store.broken = "database is locked"
    with pytest.raises(Retryable):
        read(bench.journal)
    bench.store.broken = ""
    assert read(bench.journal)


def a_drain(name: str) -> DrainNode:
    mark = Mark(check="agent", action="replace", id=CaseId("c1"))
    return DrainNode(key=Key(f"drain:{name}"), why=Why(rule="r", text="t"), node=NodeName(name), mark=mark)


def test_what_was_done_well_is_written_down_when_nobody_waits(bench: Bench) -> None:
    bench.journal.failures()
    bench.journal.begin(Memory(), [a_drain("n1")], ())
    bench.journal.keep([(a_drain("n1"), "")])
    assert bench.store.journal[-1].outcome is None
    bench.journal.flush()
    assert bench.store.journal[-1].outcome is not None


def test_that_a_job_got_its_signal_is_written_down_at_once(bench: Bench) -> None:
    signal = SignalJob(key=Key("limit:7"), why=Why(rule="r", text="t"), job=JobId(7), signal="USR1")
    bench.journal.failures()
    bench.journal.begin(Memory(), [signal], ())
    bench.journal.keep([(signal, "")])
    assert bench.store.journal[-1].outcome is not None


def test_what_failed_is_known_to_the_next_plan_and_takes_along_what_was_kept(bench: Bench) -> None:
    bench.journal.failures()
    bench.journal.begin(Memory(), [a_drain("n1"), a_drain("n2")], ())
    bench.journal.keep([(a_drain("n1"), "")])
    bench.journal.keep([(a_drain("n2"), "no answer")])
    assert bench.journal.failures() == {"drain:n2": "no answer"}
    assert all(entry.outcome is not None for entry in bench.store.journal)


def test_a_try_that_succeeds_after_one_that_failed_is_known_to_the_next_plan(bench: Bench) -> None:
    for error in ("no answer", ""):
        bench.journal.failures()
        bench.journal.begin(Memory(), [a_drain("n1")], ())
        bench.journal.keep([(a_drain("n1"), error)])
    assert bench.journal.failures() == {}


def test_an_outcome_is_written_to_its_own_intent_when_the_same_wish_comes_again(bench: Bench) -> None:
    bench.journal.failures()
    bench.journal.begin(Memory(), [a_drain("n1")], ())
    bench.journal.keep([(a_drain("n1"), "")])
    bench.journal.begin(Memory(), [a_drain("n1")], ())
    assert [entry.outcome is None for entry in bench.store.journal] == [False, True]
