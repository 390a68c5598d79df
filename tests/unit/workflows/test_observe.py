"""The picture: fresh when Slurm answers, old when it does not, and never a reason to hang. What it is about is read for
it, all else is as the last sweep showed it."""

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest

from steward.adapters.clock import SystemClock
from steward.model.case import Marking
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.job import JobState
from steward.model.memory import ClockChange, HeadMemory, Memory
from steward.model.node import Node
from steward.model.observed import Freshness, Observed
from steward.model.partition import Gate
from steward.ports import Clock, Retryable
from steward.workflows.bell import Bell
from steward.workflows.observe import Observer
from steward.workflows.pool import Workers
from steward.workflows.records import Patience
from tests.builders.picture import a_cluster
from tests.builders.quota import a_quota
from tests.fakes.applier import an_ask
from tests.fakes.clock import FakeClock
from tests.fakes.eyes import AtOnce
from tests.fakes.head_ports import FakeAgents, FakeProvider
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import FACT_S, until


@dataclass(kw_only=True)
class SlowSlurm(FakeSlurm):
    """`hangs`: reads come back only when `comes_back` is set."""

    hangs: bool = False
    reads: int = 0
    comes_back: threading.Event = field(default_factory=threading.Event)

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        self.reads += 1
        if self.hangs:
            self.comes_back.wait(FACT_S)
        return super().nodes(only)


QUICK = Patience(close=0.0, usual=1.0, asked=0.1)
"""For tests in which something hangs."""
UNDER_REPAIR = a_cluster().failing("n1").failing("n2").then().memory
GATED = replace(UNDER_REPAIR, gates={"main": Gate(partition="main", open=True, set_at=1.0)})
MARKED = replace(
    UNDER_REPAIR,
    cases={
        id: replace(case, marked=1.0, marking=Marking(shown=1.0, on_disk=True))
        for id, case in UNDER_REPAIR.cases.items()
    },
)
SET_BACK = Memory(head=HeadMemory(clock_change=ClockChange(at=10_000_000_000.0 - 3600.0, by=3600.0)))
WITH_QUOTAS = replace(UNDER_REPAIR, quotas={"q-vision": a_quota("vision", gpus=4)})


@dataclass
class Bench:
    patience: Patience = field(default_factory=lambda: Patience(close=0.0))
    slurm: SlowSlurm = field(default_factory=SlowSlurm)
    provider: FakeProvider = field(default_factory=FakeProvider)
    agents: FakeAgents = field(default_factory=FakeAgents)
    bell: Bell = field(default_factory=Bell)
    clock: Clock = field(default_factory=SystemClock)
    workers: Workers | None = None

    def __post_init__(self) -> None:
        self.slurm.node_table = FakeSlurm.with_nodes("n1", "n2").node_table
        self.observer = Observer(
            slurm=self.slurm,
            provider=self.provider,
            agents=self.agents,
            clock=self.clock,
            bell=self.bell,
            patience=self.patience,
            workers=self.workers,
        )

    def look(self, *, busy: bool = False, memory: Memory = UNDER_REPAIR) -> Observed:
        """About n1 and n2, which are under repair."""
        return self.observer.observe(busy=busy, memory=memory, failures={}, alive=lambda: None)


def test_a_picture_is_fresh_when_slurm_answers() -> None:
    seen = Bench().look()
    assert seen.slurm is Freshness.FRESH
    assert set(seen.nodes) == {"n1", "n2"}


def test_every_look_reads_anew_what_it_is_about() -> None:
    bench = Bench()
    bench.look()
    del bench.slurm.node_table[NodeName("n2")]
    assert set(bench.look().nodes) == {"n1"}


def test_a_failed_look_is_the_last_good_picture_and_called_old() -> None:
    bench = Bench()
    bench.look()
    bench.slurm.refuse = Retryable("slurmctld is away")
    seen = bench.look()
    assert seen.slurm is Freshness.OLD
    assert set(seen.nodes) == {"n1", "n2"}


def test_a_cluster_that_was_never_seen_is_absent_and_not_empty() -> None:
    bench = Bench()
    bench.slurm.refuse = Retryable("slurmctld is away")
    assert bench.look().slurm is Freshness.ABSENT


def test_slurm_that_answers_again_gives_a_fresh_picture() -> None:
    bench = Bench()
    bench.slurm.refuse = Retryable("slurmctld is away")
    bench.look()
    bench.slurm.refuse = None
    until("no read of before is under way", lambda: bench.look().slurm is Freshness.FRESH)


def test_a_hung_slurm_does_not_hang_the_look() -> None:
    bench = Bench(patience=QUICK)
    until("it was read", lambda: bench.look().slurm is Freshness.FRESH)
    bench.slurm.hangs = True
    began = time.monotonic()
    assert bench.look().slurm is Freshness.OLD
    assert time.monotonic() - began > 0.3
    bench.slurm.comes_back.set()


@pytest.mark.timeout(300)
def test_a_waiting_shim_shortens_the_patience() -> None:
    bench = Bench(patience=Patience(close=0.0, usual=600.0, asked=0.1))
    until("it was read", lambda: bench.look().slurm is Freshness.FRESH)
    bench.slurm.hangs = True
    ask = an_ask()
    bench.agents.waiting[ask.id] = ask
    seen = bench.look()
    assert (seen.slurm, seen.asks) == (Freshness.OLD, (ask,))
    bench.slurm.comes_back.set()


def test_a_hung_read_is_not_begun_a_second_time() -> None:
    bench = Bench(patience=QUICK)
    until("it was read", lambda: bench.look().slurm is Freshness.FRESH)
    bench.slurm.hangs = True
    reads = bench.slurm.reads
    bench.look()
    bench.look()
    assert bench.slurm.reads == reads + 1
    bench.slurm.comes_back.set()


def test_a_read_that_comes_in_late_rings_and_is_used() -> None:
    bench = Bench(patience=QUICK)
    until("it was read", lambda: bench.look().slurm is Freshness.FRESH)
    bench.slurm.hangs = True
    bench.look()
    bench.bell.wait(0.0)
    bench.slurm.hangs = False
    bench.slurm.comes_back.set()
    assert bench.bell.wait(FACT_S) is not None
    assert bench.look().slurm is Freshness.FRESH


def test_a_late_read_from_before_our_own_action_is_not_used() -> None:
    bench = Bench(patience=QUICK)
    until("it was read", lambda: bench.look().slurm is Freshness.FRESH)
    bench.slurm.hangs = True
    bench.look()
    bench.observer.changed(None)
    bench.bell.wait(0.0)
    bench.slurm.hangs = False
    bench.slurm.comes_back.set()
    assert bench.bell.wait(FACT_S) is not None
    reads = bench.slurm.reads
    until("it was read", lambda: bench.look().slurm is Freshness.FRESH)
    assert bench.slurm.reads > reads


def test_new_instances_ring_and_the_same_ones_do_not() -> None:
    clock = FakeClock()
    bench = Bench(patience=Patience(close=0.0, provider_busy=1.0), clock=clock, workers=AtOnce())
    bench.look(busy=True)
    assert bench.bell.is_rung
    bench.bell.wait(0.0)
    clock.at += 2.0
    bench.look(busy=True)
    assert not bench.bell.is_rung
    id = InstanceId("i-1")
    bench.provider.machines[id] = Instance(id=id, node=NodeName("n1"), state=InstanceState.RUNNING)
    clock.at += 2.0
    assert set(bench.look(busy=True).instances) == {"i-1"}
    assert bench.bell.is_rung


def test_instances_listed_before_a_launch_ended_are_old() -> None:
    bench = Bench()
    bench.look()
    until("the instances were listed", lambda: bench.look().provider is Freshness.FRESH)
    bench.provider.refuse = Retryable("the cloud is away")
    bench.observer.listing_needed()
    assert bench.look().provider is Freshness.OLD


def test_without_a_provider_there_are_no_instances() -> None:
    observer = Observer(
        slurm=FakeSlurm.with_nodes("n1"), provider=None, agents=FakeAgents(), clock=SystemClock(), bell=Bell()
    )
    assert observer.observe(busy=False, failures={}, alive=lambda: None).provider is Freshness.ABSENT


def test_partitions_are_read_beside_the_cycle_and_only_while_they_are_of_interest() -> None:
    bench = Bench()
    assert bench.look().partitions_at == 0.0
    began = time.time()
    bench.look(memory=GATED)
    until("the partitions were read", lambda: bool(bench.look(memory=GATED).partitions))
    assert bench.look().partitions_at >= began


@pytest.mark.parametrize("memory", [MARKED, WITH_QUOTAS], ids=["marked", "quotas"])
def test_where_only_a_mark_stands_or_teams_have_quotas_partitions_are_read_once_a_minute(memory: Memory) -> None:
    clock = FakeClock(10_000.0)
    bench = Bench(clock=clock, workers=AtOnce())
    read = [bench.look(memory=memory).partitions_at]
    for pause in (30.0, 31.0):
        clock.at += pause
        read.append(bench.look(memory=memory).partitions_at)
    assert read == [10_000.0, 10_000.0, 10_061.0]


def test_what_goes_by_the_clock_alone_is_not_read_in_the_first_second_of_a_recovery() -> None:
    clock = FakeClock(10_000.0)
    bench = Bench(clock=clock, workers=AtOnce())
    bench.look(memory=GATED)
    clock.at += 100.0
    ask = an_ask()
    bench.agents.waiting[ask.id] = ask
    bench.look()
    read = []
    for pause in (0.25, 0.5, 0.5):
        clock.at += pause
        read.append(bench.look(memory=GATED).partitions_at)
    assert read == [10_000.0, 10_000.0, 10_101.25]


def test_a_partition_that_changed_rings() -> None:
    bench = Bench(patience=Patience(close=0.0, usual=1.0, asked=0.1, partitions=0.0))
    until("the partitions were read", lambda: bool(bench.look(memory=GATED).partitions))
    bench.slurm.set_gate("main", open=False)
    bench.bell.wait(0.0)
    bench.look(memory=GATED)
    assert bench.bell.wait(FACT_S)


def test_a_job_that_began_before_the_clock_was_set_back_did_not_begin_in_the_future() -> None:
    clock = FakeClock(10_000_000_000.0)
    bench = Bench(clock=clock)
    bench.slurm.now = clock.at - 10.0
    job = bench.slurm.submit()
    bench.slurm.tick(1.0)
    clock.at -= 3600.0
    started = bench.look(memory=SET_BACK).jobs[job].started
    assert started is not None
    assert started <= clock.at


def test_a_job_that_began_before_the_clock_was_set_forward_is_as_old_as_before_and_stays_the_very_record() -> None:
    clock = FakeClock(10_000_000_000.0)
    bench = Bench(clock=clock)
    bench.slurm.now = clock.at - 10.0
    job = bench.slurm.submit()
    bench.slurm.tick(1.0)
    before = bench.look().jobs[job].started
    clock.at += 3600.0
    forward = Memory(head=HeadMemory(clock_change=ClockChange(at=clock.at, by=-3600.0)))
    seen = bench.look(memory=forward).jobs[job]
    assert before is not None
    assert seen.started == before + 3600.0
    clock.at += 100_000.0
    assert bench.look(memory=forward).jobs[job] is seen


def test_a_job_that_ended_before_the_clock_was_set_back_did_not_end_in_the_future() -> None:
    clock = FakeClock(10_000_000_000.0)
    bench = Bench(clock=clock)
    bench.slurm.now = clock.at
    job = bench.slurm.submit()
    ended = replace(bench.slurm.job_table[job], state=JobState.FAILED, ended=clock.at - 5.0)
    bench.slurm.job_table[job] = ended
    clock.at -= 3600.0
    at = bench.look(memory=SET_BACK).jobs[job].ended
    assert at is not None
    assert at <= clock.at
