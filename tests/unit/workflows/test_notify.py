"""Channels of notifications: each event once, over failures, hangs and restarts."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from steward.model.events import Event, Level
from steward.model.instance import Slot
from steward.model.notify import ChannelKind, ChannelRule, Message
from steward.ports import Permanent, PortError, Retryable
from steward.workflows.notify import ChannelWorker, NotifyChannel, NotifyDesk
from tests.builders.notify import RULE, an_event
from tests.builders.picture import n
from tests.fakes.clock import FakeClock
from tests.fakes.head_ports import FakeStore
from tests.fakes.until import FACT_S, until


class PowerCut(BaseException):
    """The head dies here."""


@dataclass
class FakeMessenger:
    """`error` is raised by each try; `before` is called in it."""

    arrived: list[Message] = field(default_factory=list)
    error: Exception | None = None
    before: Callable[[], object] = lambda: None

    def send(self, message: Message) -> None:
        self.before()
        if self.error is not None:
            raise self.error
        self.arrived.append(message)

    @property
    def texts(self) -> list[str]:
        return [message.last.text for message in self.arrived]


@dataclass
class Bench:
    """One channel on a store that outlives it."""

    store: FakeStore = field(default_factory=FakeStore)
    clock: FakeClock = field(default_factory=FakeClock)
    messenger: FakeMessenger = field(default_factory=FakeMessenger)
    told: list[Event] = field(default_factory=list)
    rule: ChannelRule = RULE

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        channel = NotifyChannel(kind=ChannelKind.WEBHOOK, rule=self.rule, messenger=self.messenger)
        self.worker = ChannelWorker(channel, self.store, self.clock, self.told.append, lambda node: "main")
        self.worker.turn()

    def happen(self, *events: Event) -> None:
        self.store.add_events(events)

    def settle(self) -> float:
        """Turns until there is nothing to do now; when there is again, in seconds."""
        while not (wait_s := self.worker.turn()):
            pass
        return wait_s


def test_a_new_channel_begins_with_what_happens_from_now_on() -> None:
    store = FakeStore(log=[an_event(text="old")])
    bench = Bench(store=store)
    bench.happen(an_event(text="new"))
    bench.settle()
    assert bench.messenger.texts == ["new"]


def test_each_event_is_sent_once_also_after_restarts() -> None:
    bench = Bench()
    for node in ("n1", "n2", "n3"):
        bench.happen(an_event(node=node))
        bench.settle()
        bench.start()
        bench.settle()
    assert bench.messenger.texts == ["node.fault of n1", "node.fault of n2", "node.fault of n3"]


def test_what_happened_while_the_head_was_away_is_sent_when_it_is_back() -> None:
    bench = Bench()
    bench.happen(an_event("breaker.tripped", "", level=Level.ERROR))
    bench.start()
    bench.settle()
    assert [one.last.kind for one in bench.messenger.arrived] == ["breaker.tripped"]


@pytest.mark.parametrize("when", ["in the try", "after it"])
@pytest.mark.parametrize("level", [Level.ERROR, Level.WARNING])
def test_a_crash_around_a_try_loses_no_error_and_sends_nothing_else_twice(level: Level, when: str) -> None:
    bench = Bench()
    bench.happen(an_event(level=level))
    arrived: list[int] = []

    def die() -> None:
        if when == "after it":
            arrived.append(1)
        raise PowerCut

    bench.messenger.before = die
    with pytest.raises(PowerCut):
        bench.settle()
    bench.messenger.before = lambda: None
    bench.start()
    bench.settle()
    arrived += [message.number for message in bench.messenger.arrived]
    if level is Level.ERROR:
        assert set(arrived) == {1}, "the same number: who receives it knows it again"
        assert bench.messenger.arrived
        assert bench.told == []
    else:
        assert len(arrived) <= 1
        assert [event.kind for event in bench.told] == ["notify.unsure"]


def test_a_failing_receiver_is_asked_again_and_then_an_event_tells_what_was_not_sent() -> None:
    bench = Bench(messenger=FakeMessenger(error=Retryable("the receiver answered 503")))
    bench.happen(an_event())
    for _ in range(60):
        bench.clock.at += bench.settle()
    (told,) = bench.told
    assert (told.kind, told.level) == ("notify.failed", Level.ERROR)
    assert told.text == "channel ops: node.fault was not sent: the receiver answered 503"
    bench.happen(told)
    bench.messenger.error = None
    bench.settle()
    assert bench.messenger.arrived == []


def test_a_receiver_that_is_back_gets_what_waited() -> None:
    bench = Bench(messenger=FakeMessenger(error=Retryable("down")))
    bench.happen(an_event())
    bench.settle()
    assert (bench.worker.queued, bench.worker.last_error) == (1, "down")
    bench.messenger.error = None
    bench.clock.at += 5.0
    bench.settle()
    assert (len(bench.messenger.arrived), bench.worker.queued, bench.worker.last_error) == (1, 0, "")


@pytest.mark.parametrize("error", [Permanent("the receiver answered 404"), ValueError("https://secret")])
def test_an_error_that_nobody_foresaw_is_told_without_its_text(error: Exception) -> None:
    bench = Bench(messenger=FakeMessenger(error=error))
    bench.happen(an_event())
    for _ in range(60):
        bench.clock.at += bench.settle()
    (told,) = bench.told
    assert "secret" not in told.text
    assert isinstance(error, PortError) or "unexpected ValueError" in told.text


def test_a_store_that_refuses_keeps_a_message_from_being_tried() -> None:
    bench = Bench()
    bench.happen(an_event())
    bench.store.refuse = Retryable("the disk is full")
    with pytest.raises(Retryable):
        bench.settle()
    assert bench.messenger.arrived == []
    bench.store.refuse = None
    bench.settle()
    assert len(bench.messenger.arrived) == 1


def test_events_that_concern_nobody_cost_no_write() -> None:
    bench = Bench(rule=ChannelRule(name="ops", levels=frozenset({Level.ERROR})))
    writes: list[str] = []
    bench.store.wrote = writes.append
    for _ in range(20):
        bench.happen(an_event())
        bench.settle()
    assert writes == []


def test_a_channel_that_hangs_holds_up_no_other_and_no_stop() -> None:
    let_go, store, good = threading.Event(), FakeStore(), FakeMessenger()
    bad = FakeMessenger(before=lambda: let_go.wait(FACT_S))
    channels = [
        NotifyChannel(
            kind=ChannelKind.COMMAND, rule=ChannelRule(name=name, levels=frozenset(Level)), messenger=messenger
        )
        for name, messenger in (("bad", bad), ("good", good))
    ]
    slots = {n("n2"): Slot(node=n("n2"), group="main")}
    desk = NotifyDesk(channels=channels, store=store, clock=FakeClock(), tell=lambda event: None, slots=slots)
    desk.start()
    until("both have begun", lambda: set(store.channels) == {"bad", "good"})
    store.add_events([an_event()])
    for worker in desk.workers:
        worker.wake()
    until("the good one has sent", lambda: len(good.arrived) == 1)
    assert bad.arrived == []
    desk.stop(wait_s=0.05)
    let_go.set()


def test_a_test_message_goes_by_each_channel_or_by_one_and_says_what_went_wrong() -> None:
    good, bad = FakeMessenger(), FakeMessenger(error=Permanent("the receiver answered 404"))
    channels = [
        NotifyChannel(
            kind=ChannelKind.WEBHOOK, rule=ChannelRule(name=name, levels=frozenset(Level)), messenger=messenger
        )
        for name, messenger in (("good", good), ("bad", bad))
    ]
    desk = NotifyDesk(channels=channels, store=FakeStore(), clock=FakeClock(), tell=lambda event: None, slots={})
    assert dict(desk.test("root")) == {"good": "", "bad": "the receiver answered 404"}
    assert dict(desk.test("root", "good")) == {"good": ""}
    assert dict(desk.test("root", "none")) == {}
    assert "root asked for this test" in good.texts[0]


def test_no_message_waits_for_a_clock_that_was_set_back() -> None:
    bench = Bench(clock=FakeClock(1_700_000_000.0))
    bench.messenger.error = Retryable("no answer")
    bench.happen(an_event(text="lost"))
    bench.settle()
    bench.messenger.error = None
    bench.clock.at -= 3600.0
    bench.start()
    bench.clock.at += 5.0
    bench.settle()
    assert bench.messenger.texts == ["lost"]
