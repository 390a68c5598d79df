"""Run the cycle: observe, plan, commit the intents, apply. Woken by the bell, the plan's next deadline, or the sweep.

The cycle runs in one thread. No failure in a turn ends it: the failure is logged, and the next turn begins.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from steward.model.ask import Answer
from steward.model.desired import Desired
from steward.model.events import Event, Level
from steward.model.memory import ClockChange, Memory
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan
from steward.model.setting_types import RepairMode
from steward.model.text import printable
from steward.ports import AgentPort, Clock, Deposed, Notifier, PortError
from steward.workflows.apply import Applier
from steward.workflows.attention import is_busy
from steward.workflows.bell import Bell
from steward.workflows.clock_change import since_change, since_set_back
from steward.workflows.commands import Commands
from steward.workflows.confirm import plan_confirmed
from steward.workflows.effects import Door, row_of
from steward.workflows.journal import Journal
from steward.workflows.observe import Observer
from steward.workflows.snapshot import HeadStandstill, Phases, Snapshot

log = logging.getLogger(__name__)

Planner = Callable[[Observed, Desired, Memory, float], Plan]

_TIDY_S = 0.2
"""If the bell is silent this long, the outcomes of actions are written."""
_AFTER_FAILURE_S = 1.0
_SOON_S, _SOONEST_S = 0.05, 0.02
_SHIM_LIMIT_S = 60.0
_LONG_TURN_S = 30.0
"""A turn that takes longer is reported: slow reads are made beside it, and commands of Slurm have their own limit."""
_LONGEST_WHY = 300
_LAST_WRITES = 2
_SET_S = 10.0
"""A clock that is ahead of a steady one by more than this since the last turn was set forward."""
_TELL_S = 10.0
"""A standstill that lasts longer becomes an event."""


SHARE = 0.25
"""The share of a turn's time that the cycle owes as rest."""
FREE_S = 0.5
"""This much rest may be owed without resting, so that the turns of one recovery follow each other at once."""
LONGEST_S = 0.3
"""The longest single rest."""


class ClockSet(Exception):
    """The clock was set: times that this process noted are not as old as they seem, or in the future."""

    def __init__(self, change: ClockChange) -> None:
        way = "back" if change.by > 0.0 else "forward"
        super().__init__(f"the clock was set {way} by {abs(change.by):.0f} s")
        self.change = change


class Rest:
    """The cycle's rest between two turns, so that constant bells do not use up a whole core.

    Rest is a debt: each turn owes a share of its time, and time without a turn pays. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._owed = 0.0
        self._paid_until: float | None = None

    def after(self, began: float, ended: float) -> float:
        """Return how many seconds to rest after a turn that lasted from `began` to `ended`."""
        idle = 0.0 if self._paid_until is None else began - self._paid_until
        self._owed = max(self._owed - max(idle, 0.0), 0.0) + SHARE * (ended - began)
        self._paid_until = ended
        return min(max(self._owed - FREE_S, 0.0), LONGEST_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeps:
    """The longest pause between turns in seconds; `busy_s` while work is under way."""

    quiet_s: float = 5.0
    busy_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that a cycle works with."""

    observer: Observer
    plan: Planner
    journal: Journal
    applier: Applier
    agents: AgentPort
    commands: Commands
    bell: Bell
    clock: Clock
    steady: Callable[[], float]
    """Seconds since some moment, which go on while the machine sleeps and which no command can set."""
    notifier: Notifier
    want: Desired
    sweeps: Sweeps
    new_events: deque[Event]
    """Events from outside a plan (about agents' connections); stored with the next commit."""
    permit: Callable[[], None] = lambda: None
    """Raises Unsent if this head may not act now: then nothing is committed, either."""
    clock_ahead_s: Callable[[], float] = lambda: 0.0
    """Returns by how much this clock was ahead of the clock of the head that led before."""


class Cycle:
    """The cycle. `run` belongs in a thread of its own; any thread may call `stop`.

    `watchers` are called in that thread with every snapshot.
    """

    def __init__(self, parts: Parts, watchers: Sequence[Callable[[Snapshot], None]] = ()) -> None:
        self._parts, self._watchers = parts, watchers
        self._stopping = threading.Event()
        self._memory: Memory | None = None
        self._acted = 0.0
        self._noted = (parts.clock.now(), parts.steady())
        """The latest time that a turn saw, by both clocks."""
        self.clock_set = ""
        """By how much the clock was set, in words, if the cycle ended for that."""
        self._failing = HeadStandstill(
            since=parts.clock.now(), why="the head has not finished its first look at the cluster"
        )
        self._decides, self._is_told = False, False
        self._turn_began: float | None = None
        self.latest: Snapshot | None = None

    def stop(self) -> None:
        """End the cycle after the present turn."""
        self._stopping.set()
        self._parts.bell.ring()

    def lead(self) -> None:
        """Begin anew, after this head has followed another one: what was noted at the start is old."""
        now = self._parts.clock.now()
        self._noted, self._failing = (now, self._parts.steady()), replace(self._failing, since=now)

    def run(self) -> None:
        """Run turns until `stop`, until the clock is set, or until another head leads."""
        try:
            self._run()
        except ClockSet as found:
            self.clock_set = str(found)
        except Deposed as error:
            log.error("%s", error)
        # Such as who asked for the handover that ends this head: no turn comes any more that would write it.
        left = self._parts.new_events
        while left and self._parts.journal.tell(left[0]):
            left.popleft()
        self._parts.journal.flush()

    def _run(self) -> None:
        rung: float | None = time.monotonic()
        rest = Rest()
        while not self._stopping.is_set():
            began = time.monotonic()
            wait_s = self._guarded_turn(rung)
            self._tell_alive()
            rest_s = rest.after(began, time.monotonic())
            self._stopping.wait(rest_s)
            rung = self._wait(wait_s - rest_s)

    def _wait(self, wait_s: float) -> float | None:
        """Wait for the bell; return when it rang (monotonic); None if it did not ring."""
        rung = self._parts.bell.wait(min(wait_s, _TIDY_S))
        if rung is not None or wait_s <= _TIDY_S:
            return rung
        # Outcomes are not urgent: they are written once the bell is silent.
        self._parts.journal.flush()
        return self._parts.bell.wait(wait_s - _TIDY_S)

    def turn(self, rung: float | None = None) -> float:
        """Run one turn and write its outcomes; return the seconds until the next one is due without a bell.

        Raises ClockSet and Deposed.
        """
        wait_s = self._guarded_turn(rung)
        self._parts.journal.flush()
        return wait_s

    def look(self) -> str:
        """Read the memory and Slurm, as a follower does; return why Slurm could not be read. Raises PortError.

        A head that then takes the lead has what its first turn needs in its caches.
        """
        self._parts.journal.load()
        found = self._parts.observer.look_at_slurm(lambda: None)
        return "" if found is Freshness.FRESH else f"its picture of Slurm is {found.value}"

    def is_blind(self) -> bool:
        """Return whether Slurm could not be read in the last turn. Any thread may call this."""
        return self.latest is not None and self.latest.seen.slurm is not Freshness.FRESH

    def standstill(self) -> HeadStandstill | None:
        """Return since when and why nothing is decided; None while the head decides. Any thread may call this."""
        began, now = self._turn_began, self._parts.clock.now()
        if not self._decides:
            return self._failing
        if began is not None and now - began > _LONG_TURN_S:
            return HeadStandstill(since=began, why="the turn that began then has not ended")
        return None

    def _guarded_turn(self, rung: float | None) -> float:
        """Run one turn, whatever fails in it; return the seconds until the next one. Raises ClockSet and Deposed.

        `rung` is when the bell rang (monotonic).
        """
        self._turn_began = self._parts.clock.now()
        try:
            snapshot = self._turn(rung)
        except ClockSet as found:
            self._leave_memory(found.change)
            raise
        except Deposed:
            raise
        except PortError as error:
            if self._note_failed_turn(str(error)):
                log.error("the cycle could not go on: %s", error)
        except Exception as error:
            why = f"an error in the head ({type(error).__name__}: {error}); its log shows where"
            if self._note_failed_turn(why):
                log.exception("the cycle failed; open cases: %s", self._open_cases())
        else:
            self._note_good_turn()
            self._publish(snapshot)
            return self._due_in(snapshot)
        finally:
            self._turn_began = None
        self._free_shims()
        return _AFTER_FAILURE_S

    def _leave_memory(self, change: ClockChange) -> None:
        """Write the whole memory for the next head, moved by the change of the clock, if the store takes it."""
        if self._memory is None:
            return
        memory = since_change(self._memory, change)
        # Write twice: a store that was mended since the last commit has lost rows, and only a write finds the damage.
        for _ in range(_LAST_WRITES):
            try:
                self._parts.journal.begin(memory, (), ())
            except Exception as error:
                log.warning("the memory is not written once more: %s", error)
            else:
                return

    def _note_failed_turn(self, why: str) -> bool:
        """Note that a turn failed; report it by an event once failures last for `_TELL_S`.

        Return whether the turn before did not fail for the same reason.
        """
        now, why = self._parts.clock.now(), printable(why, _LONGEST_WHY)
        is_new = self._decides or why != self._failing.why
        since = now if self._decides else self._failing.since
        self._failing, self._decides = HeadStandstill(since=since, why=why), False
        if not self._is_told and now - since >= _TELL_S:
            event = Event(at=now, kind="head.standstill", text=self._failing.text(now), level=Level.ERROR)
            self._is_told = self._parts.journal.tell(event)
        return is_new

    def _note_good_turn(self) -> None:
        """Note that a turn went well; report readiness after the first good turn, and the end of a long standstill."""
        if self._decides:
            return
        now, lasted_s = self._parts.clock.now(), self._parts.clock.now() - self._failing.since
        self._decides = True
        self._parts.notifier.ready()
        if self._is_told or lasted_s >= _TELL_S:
            text = f"the head decides again; nothing was decided for {lasted_s:.0f} s: {self._failing.why}"
            self._parts.new_events.append(Event(at=now, kind="head.decides", text=text, level=Level.WARNING))
        self._is_told = False

    def _turn(self, rung: float | None) -> Snapshot:
        """Run one turn and return its snapshot."""
        parts, marks = self._parts, [time.monotonic()]
        self._note(parts.clock.now())
        before = self._remembered()
        seen = parts.observer.observe(
            busy=self._is_busy(),
            memory=before,
            failures=parts.journal.failures(),
            alive=self._tell_alive,
        )
        self._note(seen.at)
        seen = replace(seen, done=parts.journal.done())
        marks.append(time.monotonic())
        decided = plan_confirmed(partial(self._think, before), _plan_of, seen, parts.observer, parts.observer.answer)
        seen, (plan, ordered) = decided.seen, decided.result
        marks.append(time.monotonic())
        self._commit(before, plan, ordered)
        number = self.latest.number + 1 if self.latest else 1
        snapshot = Snapshot(at=seen.at, number=number, seen=seen, before=before, memory=plan.memory, plan=plan)
        self.latest = snapshot  # before the orders are answered: their senders see the result in their next read
        parts.commands.committed()
        marks.append(time.monotonic())
        parts.applier.apply(plan.actions, seen, self._tell_alive)
        marks.append(time.monotonic())
        return replace(snapshot, phases=_phases(marks, rung))

    def _think(self, before: Memory, seen: Observed) -> tuple[Plan, list[Event]]:
        """Carry out waiting orders and plan. Both are done again if the picture changes."""
        parts = self._parts
        memory, ordered = parts.commands.take(before, seen, parts.want)
        return parts.plan(seen, parts.want, memory, seen.at), ordered

    def _remembered(self) -> Memory:
        """Return the memory, loaded from the store on the first turn."""
        if self._memory is None:
            kept = self._loaded()
            self._memory = since_set_back(kept, self._parts.clock.now())
            found = self._memory.head.clock_change
            if self._memory is not kept and found is not None:
                log.warning(
                    "the clock was set back by %.0f s: all that is remembered counts as so much older", found.by
                )
        return self._memory

    def _loaded(self) -> Memory:
        """Return the memory of the store, moved if the head that led before had another time of day."""
        kept, ahead_s = self._parts.journal.load(), self._parts.clock_ahead_s()
        if abs(ahead_s) <= _SET_S:
            return kept
        log.warning("this host's clock is %.0f s ahead of the last leader's: what it remembered is moved", ahead_s)
        return since_change(kept, ClockChange(at=self._parts.clock.now(), by=-ahead_s))

    def _note(self, now: float) -> None:
        """Note the time of the turn. Raises ClockSet if the clock was set since the last one."""
        steady = self._parts.steady()
        (before, steady_before), self._noted = self._noted, (now, steady)
        by = (steady - steady_before) - (now - before)
        if now < before or by < -_SET_S:
            raise ClockSet(ClockChange(at=now, by=by))

    def _commit(self, before: Memory, plan: Plan, ordered: list[Event]) -> None:
        """Write memory, intents and events, if there is anything new: a quiet cluster costs no disk writes."""
        told = [self._parts.new_events.popleft() for _ in range(len(self._parts.new_events))]
        events = [*told, *ordered, *plan.events]
        if plan.actions or events or plan.memory != before:
            try:
                self._parts.permit()
                self._parts.journal.begin(plan.memory, plan.actions, events)
            except Exception:
                self._parts.new_events.extendleft(reversed(told))
                raise
        self._memory = plan.memory

    def _publish(self, snapshot: Snapshot) -> None:
        """Make the snapshot the latest one, log its times, and call the watchers."""
        self.latest = snapshot
        phases = snapshot.phases
        log.debug(
            "cycle %d: %d actions",
            snapshot.number,
            len(snapshot.plan.actions),
            extra={
                "observe_ms": round(phases.observe_s * 1e3, 1),
                "plan_ms": round(phases.plan_s * 1e3, 1),
                "commit_ms": round(phases.commit_s * 1e3, 1),
                "apply_ms": round(phases.apply_s * 1e3, 1),
                "bell_ms": None if phases.bell_s is None else round(phases.bell_s * 1e3, 1),
                "slurm": snapshot.seen.slurm.value,
            },
        )
        for watcher in self._watchers:
            try:
                watcher(snapshot)
            except Exception:
                log.exception("a watcher of the cycle failed")

    def _due_in(self, snapshot: Snapshot) -> float:
        """Return the seconds until the next turn is due."""
        now = self._parts.clock.now()
        if any(row_of(action).door is Door.SLURM for action in snapshot.plan.actions):
            self._acted = now
        busy = self._is_busy()
        sweep = self._parts.sweeps.busy_s if busy else self._parts.sweeps.quiet_s
        # An action shows in Slurm soon: look again quickly after it, then ever more slowly.
        sweep = min(sweep, max(self._parts.observer.due_in(busy=busy), _SOONEST_S))
        soon = max(_SOON_S, (now - self._acted) / 2)
        wake = snapshot.plan.wake_at
        return min(sweep, soon, sweep if wake is None else max(wake - now, _SOONEST_S))

    def _is_busy(self) -> bool:
        """Return whether work is under way."""
        parts, memory = self._parts, self._memory
        return memory is None or bool(parts.agents.asks()) or is_busy(memory, parts.clock.now())

    def _tell_alive(self) -> None:
        """Tell the service manager that the head is alive, with its status."""
        self._parts.notifier.alive(self._status())

    def _status(self) -> str:
        """Return the status line of the service."""
        latest, standstill = self.latest, self.standstill()
        if standstill is not None:
            return standstill.text(self._parts.clock.now())
        if latest is None:
            return "starting"
        cases = len(self._open_cases())
        return f"{len(latest.seen.nodes)} nodes, {cases} open cases, {len(latest.seen.asks)} shims waiting"

    def _open_cases(self) -> list[str]:
        """Return the ids of the open cases."""
        return [case.id for case in self._memory.cases.values() if case.is_open] if self._memory else []

    def _free_shims(self) -> None:
        """Answer STOP to shims that waited too long: a head that cannot decide must not hold jobs."""
        now = self._parts.clock.now()
        for ask in self._parts.agents.asks():
            if now - ask.at < _SHIM_LIMIT_S:
                continue
            log.error(
                "its shim is told to stop: no decision was possible in time", extra={"job": ask.job, "node": ask.node}
            )
            try:
                self._parts.agents.answer(ask.id, Answer.STOP, frozenset())
            except PortError as error:
                log.info("not answered: %s", error)


def _plan_of(thought: tuple[Plan, list[Event]]) -> Plan:
    return thought[0]


def _phases(marks: list[float], rung: float | None) -> Phases:
    """Return the times of the turn's phases."""
    observe, plan, commit, apply = (after - before for before, after in pairwise(marks))
    bell = None if rung is None else marks[-1] - rung
    return Phases(observe_s=observe, plan_s=plan, commit_s=commit, apply_s=apply, bell_s=bell)


def dry_run(plan: Planner, snapshot: Snapshot, want: Desired, now: float) -> Plan:
    """Return the plan as if nothing were paused, only reported or already requested. Nothing is changed."""
    memory = replace(snapshot.memory, paused=False, asked={})
    acting = want.repair.model_copy(update={"mode": RepairMode.ACT})
    return plan(snapshot.seen, replace(want, repair=acting), memory, now)
