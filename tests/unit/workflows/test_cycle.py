"""The cycle goes on whatever happens, writes before it acts, and does not let a shim wait for ever."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from steward.model.action import AnswerAsk
from steward.model.agent_action import Action
from steward.model.ask import Answer
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.ids import Key
from steward.model.memory import Breaker, Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.model.repair_policy import RepairPolicy
from steward.model.setting_types import RepairMode
from steward.ports import Deposed, Retryable, Unsent
from steward.workflows.apply import Applier
from steward.workflows.bell import Bell
from steward.workflows.commands import Commands, PauseOrder, ResumeActions
from steward.workflows.cycle import Cycle, Parts, Sweeps, dry_run
from steward.workflows.effects import Ports
from steward.workflows.journal import Journal
from steward.workflows.observe import Observer
from steward.workflows.snapshot import Snapshot
from tests.builders.want import a_want
from tests.fakes.applier import N1, WHY, an_ask, down, launch
from tests.fakes.clock import FakeClock
from tests.fakes.head_ports import FakeAgents, FakeNotifier, FakeProvider, FakeSite, FakeStore, FakeWitness
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import FACT_S, until

NOW = 1000.0


def quiet(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
    return Plan(actions=(), memory=memory)


def once(*actions: Action) -> Callable[[Observed, Desired, Memory, float], Plan]:
    """Wishes each action until it was asked for."""

    def plan(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        new = tuple(action for action in actions if action.key not in memory.asked)
        return Plan(actions=new, memory=replace(memory, asked={**memory.asked, **{one.key: now for one in new}}))

    return plan


class Killed(BaseException):
    """kill -9: nothing catches it."""


@dataclass
class Bench:
    plan: Callable[[Observed, Desired, Memory, float], Plan] = quiet
    slurm: FakeSlurm = field(default_factory=lambda: FakeSlurm.with_nodes("n1", "n2"))
    provider: FakeProvider = field(default_factory=FakeProvider)
    agents: FakeAgents = field(default_factory=FakeAgents)
    store: FakeStore = field(default_factory=FakeStore)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    bell: Bell = field(default_factory=Bell)
    notifier: FakeNotifier = field(default_factory=FakeNotifier)
    snapshots: list[Snapshot] = field(default_factory=list)
    told: deque[Event] = field(default_factory=deque)
    lease: str = ""
    """Why this head does not hold the lease now."""
    ahead_s: float = 0.0
    """By how much its clock is ahead of the last leader's."""

    def may_act(self) -> None:
        if self.lease:
            raise Unsent(self.lease)

    def __post_init__(self) -> None:
        self.provider.gate.set()
        self.commands = Commands(self.bell.ring)
        self.cycle = self.head()

    def head(self) -> Cycle:
        """A head that starts on what the store has."""
        journal = Journal(self.store, self.clock, lambda kind, outcome: None)
        observer = Observer(
            slurm=self.slurm, provider=self.provider, agents=self.agents, clock=self.clock, bell=self.bell
        )
        ports = Ports(
            slurm=self.slurm, provider=self.provider, agents=self.agents, witness=FakeWitness(), site=FakeSite()
        )
        applier = Applier(
            ports,
            journal,
            changed=observer.changed,
            listing=lambda: None,
            ring=self.bell.ring,
            permit=self.may_act,
        )
        parts = Parts(
            observer=observer,
            plan=lambda seen, want, memory, now: self.plan(seen, want, memory, now),
            journal=journal,
            applier=applier,
            agents=self.agents,
            commands=self.commands,
            bell=self.bell,
            clock=self.clock,
            steady=self.clock.steady,
            notifier=self.notifier,
            want=a_want(),
            sweeps=Sweeps(quiet_s=5.0, busy_s=1.0),
            new_events=self.told,
            permit=self.may_act,
            clock_ahead_s=lambda: self.ahead_s,
        )
        return Cycle(parts, [self.snapshots.append])


def test_a_plan_is_written_before_it_is_done_and_its_outcome_after() -> None:
    bench = Bench(plan=once(down()))
    order: list[str] = []
    bench.store.wrote = lambda what: order.append(f"{what}, down: {bench.slurm.node_table[N1].is_down}")
    bench.cycle.turn()
    assert order == ["commit, down: False", "outcome, down: True"]


def test_nothing_is_done_when_the_intent_cannot_be_written() -> None:
    bench = Bench(plan=once(down()))
    bench.store.refuse = Retryable("disk full")
    bench.cycle.turn()
    assert not bench.slurm.node_table[N1].is_down
    bench.store.refuse = None
    bench.cycle.turn()
    assert bench.slurm.node_table[N1].is_down


def test_a_quiet_cycle_writes_nothing() -> None:
    bench = Bench()
    bench.cycle.turn()
    bench.cycle.turn()
    assert bench.store.commits == 0
    assert [one.number for one in bench.snapshots] == [1, 2]


def test_an_exception_in_one_turn_does_not_end_the_cycle() -> None:
    bench = Bench()

    def broken(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        raise ZeroDivisionError

    bench.plan = broken
    assert bench.cycle.turn() == 1.0
    bench.plan = once(down())
    bench.cycle.turn()
    assert bench.slurm.node_table[N1].is_down


def test_a_shim_is_let_go_when_no_decision_was_possible_for_a_minute() -> None:
    bench = Bench()

    def broken(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        raise ZeroDivisionError

    bench.plan = broken
    ask = replace(an_ask(), at=NOW)
    bench.agents.waiting[ask.id] = ask
    bench.cycle.turn()
    assert bench.agents.answers == []
    bench.clock.at += 61.0
    bench.cycle.turn()
    assert bench.agents.answers == [(ask.id, Answer.STOP)]


def test_a_failed_action_is_in_the_next_picture() -> None:
    bench = Bench(plan=once(down()))
    bench.slurm.set_reason(N1, "fans", user="anna", flags={"DRAIN"})
    bench.cycle.turn()
    bench.cycle.turn()
    assert "down:n1" in bench.snapshots[-1].seen.failures


def test_the_next_turn_is_due_at_the_plans_deadline() -> None:
    bench = Bench()
    bench.plan = lambda seen, want, memory, now: Plan(actions=(), memory=memory, wake_at=now + 0.7)
    assert bench.cycle.turn() == pytest.approx(0.7)


def test_after_an_action_slurm_is_looked_at_again_at_once_and_then_less_and_less() -> None:
    bench = Bench(plan=once(down()))
    waits = []
    for _ in range(5):
        waits.append(bench.cycle.turn())
        bench.clock.at += waits[-1] * 4
    assert waits == pytest.approx([0.05, 0.1, 0.3, 0.9, 2.7])


def test_a_head_whose_clock_is_set_back_before_its_first_look_plans_nothing() -> None:
    bench = Bench(plan=once(down()))
    bench.clock.set(-500.0)
    bench.cycle.run()
    assert (bench.cycle.clock_set, bench.snapshots) == ("the clock was set back by 500 s", [])


@dataclass
class ClockSetOnce(FakeClock):
    """A clock that is set between two readings."""

    readings: int = 0
    by: float = -3600.0

    def now(self) -> float:
        self.readings -= 1
        if self.readings == 0:
            self.set(self.by)
        return self.at


@pytest.mark.parametrize("readings", range(1, 8))
def test_a_head_whose_clock_is_set_back_plans_nothing_more_and_the_next_one_has_no_time_of_the_future(
    readings: int,
) -> None:
    clock = ClockSetOnce(1_700_000_000.0)
    bench = Bench(plan=once(down()), clock=clock)
    bench.cycle.turn()
    clock.readings, planned = readings, len(bench.snapshots)
    bench.bell.ring()
    bench.cycle.run()
    assert bench.cycle.clock_set == "the clock was set back by 3600 s"
    assert all(snapshot.at > clock.at for snapshot in bench.snapshots[planned:])
    bench.cycle = bench.head()
    bench.cycle.turn()
    assert max(bench.snapshots[-1].memory.asked.values()) <= bench.clock.at


@pytest.mark.parametrize("readings", range(1, 8))
def test_a_head_whose_clock_is_set_forward_leaves_a_memory_that_is_as_old_as_before(readings: int) -> None:
    clock = ClockSetOnce(1_700_000_000.0, by=3600.0)
    bench = Bench(plan=once(down()), clock=clock)
    bench.cycle.turn()
    clock.readings = readings
    bench.bell.ring()
    bench.cycle.run()
    assert bench.cycle.clock_set == "the clock was set forward by 3600 s"
    bench.cycle = bench.head()
    bench.cycle.turn()
    (asked,) = bench.snapshots[-1].memory.asked.values()
    assert asked == 1_700_003_600.0


def test_a_clock_that_a_time_server_moves_forward_a_little_ends_nothing() -> None:
    bench = Bench()
    bench.cycle.turn()
    bench.clock.set(9.0)
    bench.cycle.turn()
    assert bench.cycle.clock_set == ""


@pytest.mark.parametrize("ahead_s", [30.0, -30.0])
def test_a_head_that_takes_over_from_one_with_another_clock_finds_its_memory_as_old_as_it_was(ahead_s: float) -> None:
    bench = Bench(plan=once(down()))
    bench.cycle.turn()
    bench.clock.at += ahead_s
    bench.ahead_s, bench.cycle = ahead_s, bench.head()
    bench.cycle.turn()
    assert list(bench.snapshots[-1].memory.asked.values()) == [NOW + ahead_s]


def test_a_head_without_the_lease_looks_on_and_neither_writes_nor_acts() -> None:
    bench = Bench(plan=once(down()), lease="its lease could not be renewed")
    bench.cycle.turn()
    assert (bench.store.memory, bench.slurm.node_table[N1].is_down) == (Memory(), False)
    assert "lease could not be renewed" in str(bench.cycle.standstill())
    bench.lease = ""
    bench.cycle.turn()
    assert bench.slurm.node_table[N1].is_down


def test_a_head_that_loses_the_lease_after_its_commit_does_not_act() -> None:
    bench = Bench(plan=once(down()))

    def lose(what: str) -> None:
        bench.lease = "another head leads"

    bench.store.wrote = lose
    bench.cycle.turn()
    assert not bench.slurm.node_table[N1].is_down


def test_a_deposed_head_ends() -> None:
    bench = Bench(plan=once(down()))
    bench.store.refuse = Deposed("head2 has taken the lead (epoch 9)")
    bench.cycle.run()
    assert not bench.slurm.node_table[N1].is_down


def test_an_event_from_outside_is_stored_once() -> None:
    bench = Bench()
    bench.told.append(Event(at=NOW, kind="agent.conflict", text="two of them"))
    bench.store.refuse = Retryable("disk full")
    bench.cycle.turn()
    bench.store.refuse = None
    bench.cycle.turn()
    bench.cycle.turn()
    assert [event.kind for event in bench.store.log] == ["agent.conflict"]


def test_a_pause_is_in_the_store_before_the_caller_is_told() -> None:
    bench = Bench()
    caller = threading.Thread(target=lambda: bench.commands.give(PauseOrder(who="anna", why="maintenance")))
    caller.start()
    until("the command rang", lambda: bench.bell.is_rung)
    assert caller.is_alive()
    bench.cycle.turn()
    caller.join(FACT_S)
    assert bench.store.memory.paused
    assert "anna" in bench.store.log[-1].text
    assert "maintenance" in bench.store.log[-1].text


def test_resuming_actions_resets_the_breakers() -> None:
    bench = Bench()
    breaker = Breaker(scope="group main", tripped=1.0, text="too many")
    bench.store.memory = replace(bench.store.memory, paused=True, breakers={"group main": breaker})
    caller = threading.Thread(target=lambda: bench.commands.give(ResumeActions(who="anna")))
    caller.start()
    until("the command rang", lambda: bench.bell.is_rung)
    bench.cycle.turn()
    caller.join(FACT_S)
    memory = bench.store.memory
    assert (memory.paused, memory.breakers, memory.breakers_reset) == (False, {}, NOW)


def test_a_caller_is_told_when_the_cycle_is_held_up() -> None:
    with pytest.raises(Retryable, match="held up"):
        Bench().commands.give(PauseOrder(who="anna", why=""), timeout_s=0.01)


def test_it_stops_when_told_to_and_feeds_the_watchdog_until_then() -> None:
    bench = Bench()
    thread = threading.Thread(target=bench.cycle.run, daemon=True)
    thread.start()
    until("two turns were made", lambda: bool(bench.snapshots))
    bench.bell.ring()
    until("the bell woke it", lambda: len(bench.snapshots) >= 2)
    bench.cycle.stop()
    thread.join(FACT_S)
    assert not thread.is_alive()
    assert "2 nodes" in bench.notifier.told[-1]


def test_a_dry_run_shows_what_a_pause_holds_back_and_changes_nothing() -> None:
    bench = Bench()
    bench.cycle.turn()

    def careful(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        acts = want.repair.act and not memory.paused
        return replace(once(down())(seen, want, memory, now), actions=(down(),) if acts else ())

    snapshot = replace(bench.snapshots[-1], memory=Memory(paused=True, asked={Key("down:n1"): 1.0}))
    report_only = a_want(repair=RepairPolicy(mode=RepairMode.REPORT))
    assert dry_run(careful, snapshot, report_only, NOW).actions == (down(),)
    assert not bench.slurm.node_table[N1].is_down


@pytest.mark.parametrize("point", [1, 2])
def test_killed_at_any_write_the_next_head_comes_to_the_same_end(point: int) -> None:
    """Intents without an outcome are asked for again; what was done already is stale then."""
    bench = Bench()
    ask = an_ask()
    bench.agents.waiting[ask.id] = ask
    stop = AnswerAsk(key=Key("answer"), why=WHY, ask=ask.id, job=ask.job, node=ask.node, answer=Answer.STOP)
    bench.plan = once(down(), stop)
    writes = 0

    def wrote(what: str) -> None:
        nonlocal writes
        writes += 1
        if writes == point:
            raise Killed

    bench.store.wrote = wrote
    with pytest.raises(Killed):
        bench.cycle.turn()
    bench.cycle = bench.head()
    bench.cycle.turn()
    assert bench.slurm.node_table[N1].is_down
    assert bench.agents.answers == [(ask.id, Answer.STOP)]
    assert None not in bench.store.outcomes.values()


def test_a_head_that_dies_while_a_machine_is_made_does_not_make_a_second_one() -> None:
    bench = Bench(plan=once(launch()))
    bench.provider.gate.clear()
    bench.cycle.turn()
    until("the launch was begun", lambda: bench.provider.calls)
    bench.cycle = bench.head()
    bench.cycle.turn()
    until("the next head asked again", lambda: len(bench.provider.calls) == 2)
    bench.provider.gate.set()
    until("it ended", lambda: bench.store.outcomes[Key("launch:c1-0")] == "")
    assert len(bench.provider.machines) == 1


def kinds(bench: Bench) -> list[str]:
    return [event.kind for event in bench.store.log]


def test_who_asked_for_the_handover_that_ends_a_head_is_written() -> None:
    """No turn comes after it."""
    bench = Bench()
    bench.cycle.stop()
    bench.told.append(Event(at=NOW, kind="head.handed_over", text="root asked for it"))
    bench.cycle.run()

    assert kinds(bench) == ["head.handed_over"]


def test_a_head_that_cannot_go_on_says_so_in_its_log_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    """A database may be away for a night."""
    bench = Bench(plan=once(down()))
    for why in ("the database is locked", "the database is away"):
        bench.store.refuse = Retryable(why)
        for _ in range(20):
            bench.cycle.turn()
            bench.clock.at += 30.0
    said = [text for one in caplog.records if "could not go on" in (text := one.getMessage())]

    assert said == [
        "the cycle could not go on: the database is locked",
        "the cycle could not go on: the database is away",
    ]


@pytest.mark.parametrize("why", ["the database is locked", "an error in the plan"])
def test_a_head_whose_turns_fail_is_not_ready_and_says_since_when_and_why(why: str) -> None:
    """Ready is said after the first turn that goes well, and a long standstill is an event where the store takes it."""
    bench = Bench(plan=once(down()))
    plan = bench.plan

    def broken(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        raise ZeroDivisionError("an error in the plan")

    def break_it() -> None:
        if "plan" in why:
            bench.plan = broken
        else:
            bench.store.refuse = Retryable(why)

    break_it()
    for _ in range(3):
        bench.cycle.turn()
        bench.clock.at += 30.0
        standstill = bench.cycle.standstill()
        assert standstill is not None
        assert standstill.since == NOW
        assert why in standstill.text(bench.clock.now())
    assert "ready" not in bench.notifier.told
    assert kinds(bench) == (["head.standstill"] if "plan" in why else [])

    bench.store.refuse, bench.plan = None, plan
    bench.cycle.turn()
    assert bench.cycle.standstill() is None
    assert bench.notifier.told.count("ready") == 1
    bench.cycle.turn()
    assert kinds(bench)[-1] == "head.decides"
    assert "for 90 s" in bench.store.log[-1].text
    assert why in bench.store.log[-1].text

    bench.clock.at += 100.0
    break_it()
    bench.plan = broken
    bench.cycle.turn()
    standstill = bench.cycle.standstill()
    assert standstill is not None
    assert standstill.since == bench.clock.now(), "not since the one before"


def test_a_turn_that_does_not_end_is_a_standstill() -> None:
    bench = Bench()
    bench.cycle.turn()
    found: list[float | None] = []

    def hangs(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        for _ in range(2):
            bench.clock.at += 20.0
            standstill = bench.cycle.standstill()
            found.append(standstill.since if standstill else None)
        return quiet(seen, want, memory, now)

    bench.plan = hangs
    bench.cycle.turn()
    assert found == [None, NOW]
    assert bench.cycle.standstill() is None


def test_a_head_that_ends_for_its_clock_leaves_all_that_it_remembers_though_its_store_was_mended_just_now() -> None:
    bench = Bench(plan=once(down()), clock=FakeClock(1_700_000_000.0))
    bench.cycle.turn()
    bench.store.commit(Memory(), (), ())
    bench.clock.set(-3600.0)
    bench.cycle.run()
    assert bench.store.load().asked == {down().key: 1_700_000_000.0 - 3600.0}
