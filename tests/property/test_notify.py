"""Notifications under any story of events, failures and restarts: bounded, nothing twice, no error lost."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from steward.model.events import Event, Level
from steward.model.notify import ChannelKind, ChannelRule, Message
from steward.ports import Retryable
from steward.workflows.notify import ChannelWorker, NotifyChannel
from tests.builders.notify import an_event
from tests.fakes.clock import FakeClock
from tests.fakes.head_ports import FakeStore

PER_HOUR = 4
RULE = ChannelRule(name="ops", levels=frozenset(Level), window_s=60.0, per_hour=PER_HOUR)
EVENTS = st.builds(an_event, node=st.sampled_from(["n1", "n2", "n3"]), level=st.sampled_from(Level))
TURNS = st.lists(
    st.tuples(
        st.lists(EVENTS, max_size=6), st.sampled_from(["well", "fails", "dies", "dies after"]), st.floats(0, 2000)
    ),
    max_size=40,
)


class PowerCut(BaseException):
    """The head dies here."""


@dataclass
class Receiver:
    """What is tried and what arrives, at what time."""

    clock: FakeClock
    mood: str = "well"
    tried: list[float] = field(default_factory=list)
    arrived: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.tried.append(self.clock.at)
        if self.mood == "fails":
            raise Retryable("down")
        if self.mood == "dies":
            raise PowerCut
        self.arrived.append(message)
        if self.mood == "dies after":
            raise PowerCut


def work(worker: ChannelWorker) -> None:
    while not worker.turn():
        pass


@given(TURNS)
def test_tries_are_bounded_nothing_comes_twice_and_no_error_is_lost(
    turns: list[tuple[list[Event], str, float]],
) -> None:
    store, clock = FakeStore(), FakeClock()
    receiver, failed = Receiver(clock), list[Event]()

    def started() -> ChannelWorker:
        channel = NotifyChannel(kind=ChannelKind.WEBHOOK, rule=RULE, messenger=receiver)
        return ChannelWorker(channel, store, clock, failed.append, lambda node: "")

    worker = started()
    work(worker)
    for events, receiver.mood, seconds in turns:
        store.add_events(events)
        clock.at += seconds
        try:
            work(worker)
        except PowerCut:
            worker = started()
    receiver.mood = "well"
    for _ in range(60):
        work(worker)
        clock.at += 600.0
    assert worker.queued == 0
    for at in receiver.tried:
        assert sum(at <= other < at + 3600.0 for other in receiver.tried) <= PER_HOUR
    quiet = [one.number for one in receiver.arrived if one.level is not Level.ERROR]
    assert len(quiet) == len(set(quiet))
    if all(event.kind != "notify.failed" for event in failed):
        told = {one.last.node for one in receiver.arrived}
        assert {event.node for event in store.log if event.level is Level.ERROR} <= told
