"""The lead of one of several heads: follow, take the lease when its holder is gone, renew it, give it up.

A head goes one way: it follows, then it leads, then its process ends, and the next one follows
([0035](../../../docs/decisions/0035-two-heads.md)). The lease's times are measured by each head's own steady clock:

- A leader renews the lease every `RENEW_S`, and begins no act `ACTS_S` after it began the last renewal that succeeded.
- A follower takes the lease when it has seen no change of it for `TAKE_S`, so after the leader stopped acting, whatever
  the time of day is here, there, or in the database.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from steward.model.events import Event, Level
from steward.model.leadership import ALONE, FollowerWord, Heads, Leadership, LeaderWord, Lease, OtherHead
from steward.ports import Clock, Deposed, LeasePort, Notifier, PortError, Unsent
from steward.workflows.following import LeaderSight, reason_to_hand_over

log = logging.getLogger(__name__)

RENEW_S, ACTS_S, TAKE_S = 1.0, 3.0, 4.0
LOOK_S = 0.25
"""How often a follower looks at the lease, and how soon a leader tries again after a renewal that failed."""
TELL_S = 5.0
"""How often a follower says how it is."""
HEARD_S = 15.0
"""A follower that has said nothing for this long is away."""
DEADMAN_S = 0.5
"""How long after the last act a process that still stands still is ended; before another head takes the lease."""


_ONE_NAME = (
    "name both in agent.head as agents reach them, such as head1:6861 and head2:6861, on both hosts and all nodes"
)


class End(Enum):
    """Why a head that led leads no more."""

    DEPOSED = "deposed"
    HANDED_OVER = "handed over"


class Alone:
    """The lead of a head without a shared database: it may always act."""

    def leadership(self) -> Leadership:
        return ALONE

    def check(self) -> None:
        """Let every act be done."""

    def clock_ahead_s(self) -> float:
        """Return 0: no head led before with another clock."""
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """This head, for the others. `cluster`, `place`: see LeaderWord."""

    name: str
    cluster: str = ""
    place: str = ""
    version: str = ""

    def word(self, at: float, since: float, *, is_blind: bool = False) -> LeaderWord:
        """Return what this head writes into the lease."""
        return LeaderWord(
            at=at, since=since, version=self.version, cluster=self.cluster, place=self.place, is_blind=is_blind
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSight:
    """What this head sees of Slurm. No function of it blocks."""

    is_blind: Callable[[], bool] = lambda: False
    """Returns whether a leader cannot read Slurm."""
    is_beside_slurmctld: Callable[[], bool] = lambda: True
    """Returns whether the slurmctld that is in control runs on this host."""
    as_follower: Callable[[], FollowerWord] = FollowerWord
    """Returns what this head says of itself while it follows."""


@dataclass(slots=True)
class _Seen:
    """Something of another head that changes while it is alive, and when it was last seen to change (steady s)."""

    value: object
    changed: float


class Leading:
    """The part of one head in the lease. `run` belongs in a thread of its own; any thread may call the rest.

    `steady` is CLOCK_BOOTTIME: it goes on while the machine sleeps. `deadman` gets the time of that clock at which this
    process must be ended unless another time is set before; None: at no time. `peers` are the names of the other heads.
    `notifier` is told that a follower is ready, and alive. `tell` gets events, which the cycle stores.
    """

    def __init__(
        self,
        port: LeasePort,
        me: Me,
        *,
        clock: Clock,
        steady: Callable[[], float],
        deadman: Callable[[float | None], None] = lambda at: None,
        peers: Sequence[str] = (),
        sight: OwnSight | None = None,
        notifier: Notifier | None = None,
        tell: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._port, self._me, self._clock, self._steady, self._deadman = port, me, clock, steady, deadman
        self._peers, self._sight, self._notifier, self._tell_event = peers, sight or OwnSight(), notifier, tell
        self._stopping, self._lock = threading.Event(), threading.Lock()
        self.leads = threading.Event()
        """Set once this head has taken the lead; it stays set."""
        self.end: End | None = None
        self._ahead_s = 0.0
        self._acts_until = self._led_from = float("-inf")
        self._blind_from: float | None = None
        self.is_leader_blind = False
        """Whether the head that leads cannot read Slurm."""
        self._leadership = Leadership()
        self._trouble = "the lease has not been read yet"
        self._seen: _Seen | None = None
        self._twin = ""
        self._heard: dict[str, _Seen] = {}
        self._words: Mapping[str, FollowerWord] = {}
        self._told, self._beat, self._is_ready = float("-inf"), 0, False
        self._ends: Callable[[], object] = lambda: None

    # Any thread

    def leadership(self) -> Leadership:
        """Return who leads, as last read; it is ours only while we may act."""
        known = self._leadership
        return replace(known, is_mine=False) if known.is_mine and self._steady() >= self._acts_until else known

    def check(self) -> None:
        """Raise Unsent unless this head holds the lease now: called right before each act."""
        if self._steady() >= self._acts_until:
            raise Unsent(f"this head may not act: {self._why_not()}")

    def clock_ahead_s(self) -> float:
        """Return by how much this clock was ahead of the last leader's when this head last saw it renew the lease."""
        return self._ahead_s

    def trouble(self) -> str:
        """Return why the lease could not be read or renewed last; empty if it could."""
        return self._trouble

    def heads(self) -> Heads:
        """Return all heads as this one knows them; a leader knows the others."""
        known, heard, words = self._leadership, self._heard_now(), self._words
        names = [*dict.fromkeys((*self._peers, *sorted(heard)))]
        return Heads(
            is_mine=self.leadership().is_mine,
            picture_s=None if self.leads.is_set() else self._sight.as_follower().picture_s,
            leader=known.leader,
            epoch=known.epoch,
            since=known.since,
            is_beside_slurmctld=self._sight.is_beside_slurmctld(),
            trouble=self._trouble,
            others=tuple(_other(name, words.get(name, FollowerWord()), name in heard) for name in names),
        )

    def _heard_now(self) -> frozenset[str]:
        """Return the names of the other heads that said something lately."""
        now, heard = self._steady(), self._heard
        names = {name for name, seen in heard.items() if now - seen.changed <= HEARD_S}
        return frozenset(names - {self._me.name})

    def is_stopped(self) -> bool:
        """Return whether this head ends."""
        return self._stopping.is_set() or self.end is not None

    def stop(self) -> None:
        """End `run`; a lease that is held is kept until `release`."""
        self._stopping.set()

    def hand_over(self, why: str) -> None:
        """Let another head lead: this one ends, and gives up the lease after its last act."""
        text = f"{self._me.name} hands the lead over: {why}"
        log.warning("%s", text)
        self._tell_event(Event(at=self._clock.now(), kind="head.handed_over", text=text, level=Level.WARNING))
        self._ended(End.HANDED_OVER)

    def release(self) -> None:
        """Give the lease up, after the last act and write; another head may take it at once."""
        self._set_deadline(float("-inf"))
        try:
            self._port.release()
        except PortError as error:
            log.warning("the lease is not given up, and runs out: %s", error)

    # The thread of the lease

    def run(self, ends: Callable[[], object]) -> None:
        """Follow until the lease is ours, then renew it, until `stop` or until another head has it.

        `ends` is called when the head must end, in whatever thread finds that.
        """
        self._ends = ends
        try:
            while not self._stopping.is_set() and self.end is not End.DEPOSED:
                self._stopping.wait(self.step())
        finally:
            ends()

    def step(self) -> float:
        """Do what is due now; return the seconds until the next step."""
        try:
            wait_s = self._renew() if self.leads.is_set() else self._follow()
            self._note_trouble(self._twin)
        except Deposed as error:
            log.error("%s: this head ends, and the next one follows", error)
            self._set_deadline(float("-inf"))
            self._ended(End.DEPOSED)
            return 0.0
        except PortError as error:
            self._note_trouble(str(error))
            # What was not seen to change for want of a look may have changed.
            self._seen, wait_s = None, LOOK_S
        self._tell_manager()
        return wait_s

    def _note_trouble(self, text: str) -> None:
        """Note why this head may not lead; log it when it begins."""
        if text and not self._trouble:
            log.warning("%s", text)
        self._trouble = text

    # A thread of its own, since that of the lease may wait for the database

    def watch_deadline(self) -> None:
        """Spare a process that is alive when it may act no more: the timer is for one that stands still."""
        while not self._stopping.wait(self.spare()):
            pass

    def spare(self) -> float:
        """Disarm the timer if this head may act no more; return the seconds until the next look."""
        with self._lock:
            left = self._acts_until - self._steady()
            if left > 0:
                return left
            self._deadman(None)
            return LOOK_S

    def _follow(self) -> float:
        there = self._port.read()
        now = self._steady()
        if self._seen is None or self._seen.value != (there.epoch, there.beat):
            if self._seen is not None and there.leader:
                self._ahead_s = self._clock.now() - there.word.at
            self._twin = self._why_twin(there) if self._seen is not None else ""
            self._seen = _Seen((there.epoch, there.beat), now)
        # A lease of our place is one of a process that is over.
        is_free = not there.leader or self._is_ours(there) or now - self._seen.changed >= TAKE_S
        if is_free and self._take(there):
            return RENEW_S
        self._leadership, self.is_leader_blind = _as_known(there), there.word.is_blind
        if now - self._told >= TELL_S:
            self._told, self._beat = now, self._beat + 1
            said = self._sight.as_follower()
            word = replace(said, beat=self._beat, version=self._me.version, ahead_s=self._ahead_s)
            self._port.tell(self._me.name, word)
        return LOOK_S

    def _is_ours(self, there: Lease) -> bool:
        """Return whether an earlier process of this head holds the lease."""
        return there.leader == self._me.name and there.word.place == self._me.place

    def _why_twin(self, there: Lease) -> str:
        """Return that a head of another host that leads has our name; empty if it has not."""
        if there.leader != self._me.name or self._is_ours(there):
            return ""
        return f"another host's head has the same name, {there.leader}, and leads: {_ONE_NAME}"

    def _take(self, there: Lease) -> bool:
        """Take the lease if it is still as it was read; return whether it is ours."""
        began, at = self._steady(), self._clock.now()
        taken = self._port.take(there, self._me.name, self._me.word(at, at))
        if taken is None:
            return False
        self._hold(taken, began)
        self._twin = ""
        self._led_from = began
        self.leads.set()
        before = f"{there.leader} led before, and renews its lease no more" if there.leader else "the lease was free"
        text = f"{self._me.name} leads from now on: {before}"
        log.warning("%s (epoch %d)", text, taken.epoch)
        self._tell_event(Event(at=at, kind="head.leads", text=text, level=Level.WARNING))
        return True

    def _renew(self) -> float:
        began, since = self._steady(), self._leadership.since
        self._blind_from = (self._blind_from or began) if self._sight.is_blind() else None
        word = self._me.word(self._clock.now(), since, is_blind=self._blind_from is not None)
        self._hold(self._port.renew(word), began)
        self._hear(self._port.followers())
        if reason := self._reason_to_hand_over(began):
            self.hand_over(reason)
        return RENEW_S

    def _reason_to_hand_over(self, now: float) -> str:
        """Return why another head should lead; empty if this one should."""
        mine = LeaderSight(
            led_s=now - self._led_from,
            blind_s=0.0 if self._blind_from is None else now - self._blind_from,
            is_beside_slurmctld=self._sight.is_beside_slurmctld(),
        )
        return reason_to_hand_over(mine, [self._words[name] for name in self._heard_now()])

    def _hold(self, lease: Lease, began: float) -> None:
        """Note a lease that was ours at a moment after `began`."""
        self._set_deadline(began + ACTS_S)
        self._leadership = replace(_as_known(lease), is_mine=True)

    def _set_deadline(self, at: float) -> None:
        """Set until when this head may act, and when the kernel ends it if it stands still then."""
        with self._lock:
            self._acts_until = at
            self._deadman(at + DEADMAN_S if at > 0.0 else None)

    def _hear(self, words: Mapping[str, FollowerWord]) -> None:
        """Note which followers said something new."""
        now, before = self._steady(), self._heard
        new = {name: _Seen(word.beat, now if name in before else float("-inf")) for name, word in words.items()}
        same = {name for name in new if name in before and before[name].value == new[name].value}
        self._heard = {name: before[name] if name in same else each for name, each in new.items()}
        self._words = words

    def _tell_manager(self) -> None:
        """Tell the service manager that this head follows; a leader's cycle tells it for itself."""
        if self._notifier is None or self.leads.is_set():
            return
        if not self._trouble and not self._is_ready:
            self._is_ready = True
            self._notifier.ready()
        self._notifier.alive(self._status())

    def _status(self) -> str:
        """Return what a follower does, for the service manager."""
        if self._trouble:
            return f"follows, but {self._trouble}"
        return f"follows {self._leadership.leader}" if self._leadership.leader else "follows; no head leads now"

    def _why_not(self) -> str:
        if self.end is not None:
            return f"its lead is {self.end.value}"
        if not self.leads.is_set():
            return f"{self._leadership.leader or 'no head'} leads"
        return f"its lease could not be renewed for {ACTS_S:g} s: {self._trouble or 'this process stood still'}"

    def _ended(self, end: End) -> None:
        self.end = self.end or end
        self._ends()


def _other(name: str, word: FollowerWord, is_heard: bool) -> OtherHead:
    return OtherHead(
        name=name,
        is_heard=is_heard,
        picture_s=word.picture_s,
        trouble=word.trouble,
        version=word.version,
        ahead_s=word.ahead_s,
    )


def _as_known(lease: Lease) -> Leadership:
    return Leadership(leader=lease.leader, epoch=lease.epoch, since=lease.word.since)
