"""Send notifications by channels. Each has its own thread, so that a hanging channel blocks no other."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from steward.model.events import Event, Level
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.notify import ChannelKind, ChannelRule, ChannelState, Message
from steward.ports import Clock, MessengerPort, Permanent, PortError, StorePort
from steward.views import notify
from steward.views.notify import GroupOf
from steward.workflows.clock_change import since_stamp
from steward.workflows.snapshot import Snapshot

log = logging.getLogger(__name__)

_PAGE = 500
_IDLE_S = 30.0
_AFTER_FAILURE_S = 5.0
_ENDS_S = 2.0
_FAR = 500
"""After this many events that the channel does not send, its cursor is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyChannel:
    """The rule and the messenger of one channel."""

    kind: ChannelKind
    rule: ChannelRule
    messenger: MessengerPort


class ChannelWorker:
    """The sender of one channel's events, each once. `turn` does one thing; `run` repeats that until `stop`.

    Each try is written to the store before it is made, and its outcome after it.
    """

    def __init__(
        self, channel: NotifyChannel, store: StorePort, clock: Clock, tell: Callable[[Event], None], group_of: GroupOf
    ) -> None:
        self.channel = channel
        self._store, self._clock, self._tell, self._group_of = store, clock, tell, group_of
        self._state: ChannelState | None = None
        self._kept: ChannelState | None = None
        self._awake, self._stopping = threading.Event(), threading.Event()
        self.last_sent: float | None = None
        self.last_error = ""

    @property
    def queued(self) -> int:
        """Return how many messages wait to be sent."""
        return len(self._state.queue) if self._state else 0

    def wake(self) -> None:
        """Wake the worker for new events."""
        self._awake.set()

    def stop(self) -> None:
        """End the worker."""
        self._stopping.set()
        self._awake.set()

    def begin(self) -> None:
        """Load the channel's state; a new channel begins with events from now on.

        If the store fails, the first turn loads it.
        """
        try:
            self._state = self._loaded()
        except PortError as error:
            log.warning("notify channel %s waits for the store: %s", self.channel.rule.name, error)

    def run(self) -> None:
        """Run turns until `stop`."""
        while not self._stopping.is_set():
            self._awake.clear()
            try:
                wait_s = self.turn()
            except PortError as error:
                log.warning("notify channel %s waits for the store: %s", self.channel.rule.name, error)
                wait_s = _AFTER_FAILURE_S
            except Exception:
                log.exception("notify channel %s failed", self.channel.rule.name)
                wait_s = _AFTER_FAILURE_S
            self._awake.wait(wait_s)

    def turn(self) -> float:
        """Take new events and try at most one message; return the seconds until the next turn.

        Raises PortError of the store.
        """
        now, rule = self._clock.now(), self.channel.rule
        state = self._with_new_events(now)
        message = notify.next_message(state, rule, now)
        if message is not None:
            self._try(state, message)
            return 0.0
        at = notify.next_due(state, rule, now)
        return _IDLE_S if at is None else min(max(at - now, 0.05), _IDLE_S)

    def _with_new_events(self, now: float) -> ChannelState:
        """Return the state after all new events; write it if its queue changed or its cursor is far ahead."""
        state = self._state or self._loaded()
        while True:
            page = self._store.events(after=state.cursor, limit=_PAGE)
            state = notify.with_events(state, self.channel.rule, page, self._group_of, now)
            if len(page) < _PAGE:
                break
        self._state = state
        if self._kept is None or state.queue != self._kept.queue or state.cursor > self._kept.cursor + _FAR:
            self._keep(state)
        return state

    def _loaded(self) -> ChannelState:
        """Return the channel's state from the store; a new channel begins with events from now on."""
        found = self._store.channel(self.channel.rule.name)
        if found is not None:
            stamp = max((*found.attempts, *found.sent_at.values()), default=0.0)
            return self._resumed(since_stamp(found, stamp, self._clock.now()))
        last = self._store.events(limit=1)
        return ChannelState(cursor=last[-1][0] if last else 0)

    def _resumed(self, found: ChannelState) -> ChannelState:
        """Return the state to go on from; report each dropped message that may have arrived or not."""
        state = notify.after_restart(found)
        kept = {one.number for one in state.queue}
        for one in found.queue:
            if one.number not in kept:
                text = f"{one.last.kind} was being sent when the head ended; it may not have arrived"
                self._report(text, "notify.unsure", Level.WARNING)
        return state

    def _try(self, state: ChannelState, message: Message) -> None:
        """Try to send a message, and write the outcome."""
        begun = notify.after_try_began(state, message, self._clock.now())
        self._keep(begun)
        error, is_final = _sent(self.channel.messenger, message)
        if not error:
            self.last_sent, self.last_error = self._clock.now(), ""
            self._keep(notify.without_message(begun, message))
            return
        self.last_error = error
        after = notify.after_failed_try(begun, message, self._clock.now(), is_final=is_final)
        self._keep(after)
        if notify.is_given_up(after, message):
            self._give_up(message, error)
        else:
            log.info("notify channel %s: %s; it is tried again", self.channel.rule.name, error)

    def _give_up(self, message: Message, error: str) -> None:
        """Report that a message was not sent and is given up."""
        what = f"{message.count} x {message.last.kind}" if message.count > 1 else message.last.kind
        self._report(f"{what} was not sent: {error}", "notify.failed", Level.ERROR)

    def _report(self, text: str, kind: str, level: Level) -> None:
        """Report an event about the channel."""
        told = f"channel {self.channel.rule.name}: {text}"
        self._tell(Event(at=self._clock.now(), kind=kind, text=told, level=level))

    def _keep(self, state: ChannelState) -> None:
        """Write the state to the store."""
        self._state = state
        self._store.keep_channel(self.channel.rule.name, state)
        self._kept = state


class NotifyDesk:
    """All channels, started and stopped with the head."""

    def __init__(
        self,
        *,
        channels: Sequence[NotifyChannel],
        store: StorePort,
        clock: Clock,
        tell: Callable[[Event], None],
        slots: Mapping[NodeName, Slot],
    ) -> None:
        self._clock, self._slots = clock, slots
        self._latest: Snapshot | None = None
        self._threads: list[threading.Thread] = []
        self.workers = tuple(ChannelWorker(one, store, clock, tell, self._group_of) for one in channels)

    def start(self) -> None:
        """Start all channels, before the first cycle, so that its events reach them."""
        for worker in self.workers:
            worker.begin()
            thread = threading.Thread(target=worker.run, name=f"notify-{worker.channel.rule.name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, wait_s: float = _ENDS_S) -> None:
        """Stop all channels; wait `wait_s` seconds for messages being sent, so that their outcomes are written."""
        for worker in self.workers:
            worker.stop()
        until = time.monotonic() + wait_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def follow(self, snapshot: Snapshot) -> None:
        """Wake the channels, because a cycle ended and its events are in the store."""
        self._latest = snapshot
        for worker in self.workers:
            worker.wake()

    def _group_of(self, node: NodeName) -> str:
        """Return the node's group; empty if it has none."""
        record = self._latest.memory.slots.get(node) if self._latest else None
        slot = self._slots.get(node)
        return record.group if record else slot.group if slot else ""

    def test(self, who: str, name: str = "") -> Iterator[tuple[str, str]]:
        """Send a test message by all channels, or by the named one; yield each channel with its error (empty: none)."""
        now = self._clock.now()
        text = f"{who} asked for this test of Steward's notifications"
        event = Event(at=now, kind="notify.test", text=text)
        message = Message(number=int(now * 1000), key="test", last=event, level=event.level, since=now)
        chosen = [one.channel for one in self.workers if name in ("", one.channel.rule.name)]
        with ThreadPoolExecutor(max_workers=max(1, len(chosen))) as pool:
            errors = pool.map(lambda channel: _sent(channel.messenger, message)[0], chosen)
            yield from zip((channel.rule.name for channel in chosen), errors, strict=True)


def _sent(messenger: MessengerPort, message: Message) -> tuple[str, bool]:
    """Send the message; return the error (empty: none), and whether a further try is useless."""
    try:
        messenger.send(message)
    except PortError as error:
        return str(error), isinstance(error, Permanent)
    except Exception as error:  # the error's text may contain the webhook's secret URL
        return f"unexpected {type(error).__name__}", False
    return "", False
