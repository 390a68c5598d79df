"""Which of Slurm's records a turn reads: those that it is about, and all of them only when a sweep is due or needed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.observed import Freshness, Subject
from steward.ports import Retryable
from steward.workflows.attention import Attention
from steward.workflows.book import Pace, cost_of
from steward.workflows.records import Patience, Records
from tests.builders.picture import names
from tests.fakes.clock import FakeClock
from tests.fakes.slurm import FakeSlurm

N1, N2 = NodeName("n1"), NodeName("n2")
NOBODY = Subject()
ALL = "all"


@dataclass(kw_only=True)
class CountingSlurm(FakeSlurm):
    """`reads` is what was read of nodes and jobs, in order."""

    reads: list[object] = field(default_factory=list)

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        self.reads.append(ALL if only is None else set(only))
        return super().nodes(only)

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        self.reads.append(ALL if only is None else set(only))
        return super().jobs(only, on=on)


@dataclass
class Waits:
    """Workers that carry out calls when they are told to."""

    calls: list[Callable[[], None]] = field(default_factory=list)
    at_once: bool = True

    def submit(self, call: Callable[[], None]) -> None:
        if self.at_once:
            call()
        else:
            self.calls.append(call)

    def run(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Bench:
    def __init__(self, count: int = 6, dear: float = 0.1, quiet_s: float = 5.0) -> None:
        self.slurm = CountingSlurm()
        self.slurm.node_table = FakeSlurm.with_nodes(*(f"n{i}" for i in range(1, count + 1))).node_table
        self.clock, self.pool, self.rings = FakeClock(1000.0), Waits(), 0
        self.records = Records(
            self.slurm,
            pool=self.pool,
            clock=self.clock,
            patience=Patience(
                sweep=Pace(least_s=quiet_s, share=1.0), sweep_busy=Pace(least_s=1.0, share=1.0), dear=dear
            ),
            ring=self._ring,
            is_asked=lambda: False,
        )
        self.look()

    @property
    def is_fresh(self) -> bool:
        return self.fresh is Freshness.FRESH

    def _ring(self) -> None:
        self.rings += 1

    def look(
        self,
        *,
        asked: Subject = NOBODY,
        open: Subject = NOBODY,
        new: Mapping[JobId, float] | None = None,
        unseen: bool = False,
        anew: float = 0.0,
        busy: bool = False,
        asked_at: float = 0.0,
        hurried: bool = False,
        lost: float = 0.0,
    ) -> list[object]:
        """What one turn read."""
        self.slurm.reads.clear()
        about = Attention(asked=asked, open=open, new=new or {}, unseen=unseen, hurried=hurried, lost=lost)
        self.fresh: Freshness = self.records.look(about, asked=asked_at, anew=anew, busy=busy, alive=lambda: None)
        return list(self.slurm.reads)

    def confirm(self, *nodes: str, jobs: Collection[int] = ()) -> list[object]:
        self.slurm.reads.clear()
        subject = Subject(nodes=names(*nodes), jobs=frozenset(map(JobId, jobs)))
        fresh = self.records.confirm(subject, lambda: None)
        self.fresh = self.fresh if fresh is None else fresh
        return list(self.slurm.reads)


def nodes(*given: str) -> Subject:
    return Subject(nodes=names(*given))


def test_the_first_turn_reads_everything() -> None:
    bench = Bench()
    assert bench.slurm.reads == [ALL, ALL]
    assert bench.fresh is Freshness.FRESH


def test_a_quiet_turn_reads_nothing_until_the_sweep_is_due() -> None:
    bench = Bench()
    bench.clock.at += 4.0
    assert bench.look() == []
    assert bench.fresh is Freshness.FRESH
    bench.clock.at += 1.0
    assert bench.look() == [ALL, ALL]


def test_while_something_is_open_the_sweep_goes_every_second() -> None:
    bench = Bench()
    bench.clock.at += 1.0
    assert bench.look(busy=True) == [ALL, ALL]


def test_what_a_turn_is_about_is_read_and_nothing_else() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    found = bench.look(open=Subject(nodes=names("n1"), jobs=frozenset({JobId(7)})), asked=nodes("n2"))
    assert found == [{"n1", "n2"}, {7}]


def test_no_turn_waits_for_a_sweep_that_is_merely_due() -> None:
    bench = Bench()
    bench.clock.at += 5.0
    bench.pool.at_once = False
    bench.look()
    assert bench.fresh is Freshness.FRESH
    bench.pool.run()
    assert bench.rings == 0
    del bench.slurm.node_table[N2]
    bench.clock.at += 5.0
    bench.look()
    bench.pool.run()
    assert bench.rings == 1
    assert N2 not in bench.records.nodes.page.records


def test_a_sweep_that_failed_makes_the_picture_old_until_one_succeeds() -> None:
    bench = Bench()
    bench.clock.at += 5.0
    bench.slurm.refuse = Retryable("slurmctld is away")
    bench.look()
    assert bench.fresh is Freshness.OLD
    bench.clock.at += 0.1
    bench.look()
    assert bench.fresh is Freshness.OLD
    bench.slurm.refuse = None
    assert bench.look() == [ALL, ALL]
    assert bench.is_fresh


def test_a_narrow_look_that_failed_makes_the_picture_old_for_this_turn() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.slurm.refuse = Retryable("slurmctld is away")
    bench.look(open=nodes("n1"))
    assert bench.fresh is Freshness.OLD
    bench.slurm.refuse = None
    assert bench.look() == []
    assert bench.is_fresh


def test_a_sweep_that_is_much_too_old_is_waited_for() -> None:
    bench = Bench()
    bench.clock.at += 30.0
    bench.pool.at_once = False
    bench.records._patience = replace(bench.records._patience, usual=0.0)
    bench.look()
    assert bench.fresh is Freshness.OLD


def test_what_we_changed_is_read_before_anything_is_planned_on_it() -> None:
    bench = Bench()
    bench.clock.at += 0.1
    bench.records.changed(Subject(nodes=names("n3"), jobs=frozenset({JobId(7)})))
    bench.clock.at += 0.1
    assert bench.look() == [{"n3"}, {7}]
    assert bench.look() == []


def test_a_look_that_began_before_we_changed_the_record_is_not_enough() -> None:
    bench = Bench()
    bench.pool.at_once = False
    bench.records._patience = replace(bench.records._patience, usual=0.0)
    bench.clock.at += 0.5
    bench.look(open=nodes("n1"))
    assert bench.fresh is Freshness.OLD, "nobody carries it out"
    bench.pool.run()
    bench.clock.at += 0.1
    bench.records.changed(nodes("n1"))
    bench.pool.at_once = True
    assert bench.look(open=nodes("n1")) == [{"n1"}]


def test_a_change_that_nobody_can_name_has_everything_read() -> None:
    bench = Bench()
    bench.clock.at += 0.1
    bench.records.changed(None)
    bench.clock.at += 0.1
    assert bench.look() == [ALL, ALL]
    assert bench.look() == []


def test_a_slurmctld_that_began_anew_is_read_as_a_whole() -> None:
    bench = Bench()
    bench.clock.at += 2.0
    assert bench.look(anew=1001.0) == [ALL, ALL]
    assert bench.look(anew=1001.0) == []


def test_many_nodes_at_once_are_read_by_the_sweep_and_not_more_often_than_it_goes() -> None:
    bench = Bench(200)
    many = nodes(*(f"n{i}" for i in range(1, 101)))
    bench.clock.at += 0.5
    assert bench.look(open=many, busy=True) == []
    bench.clock.at += 0.6
    assert bench.look(open=many, busy=True)[0] == ALL


def test_beside_many_open_nodes_those_that_somebody_asks_about_are_read_by_name() -> None:
    bench = Bench(200)
    bench.clock.at += 0.5
    assert bench.look(open=nodes(*(f"n{i}" for i in range(1, 101))), asked=nodes("n1")) == [{"n1"}]


def test_many_nodes_that_we_changed_are_read_by_a_sweep_that_began_since() -> None:
    bench = Bench(200)
    bench.clock.at += 0.5
    bench.records.changed(nodes(*(f"n{i}" for i in range(1, 101))))
    bench.clock.at += 0.1
    assert bench.look() == [ALL]


def test_a_job_that_was_told_of_is_read_once() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    assert bench.look(new={JobId(9): 1000.3}) == [{9}]
    assert bench.look(new={JobId(9): 1000.3}) == []


def test_a_job_whose_number_nobody_knows_is_looked_for_among_all() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    assert bench.look(unseen=True) == []
    bench.clock.at += 1.0
    assert bench.look(unseen=True) == [ALL]


def test_a_sweep_takes_its_time_by_what_it_costs() -> None:
    pace = Pace(least_s=5.0, most_s=60.0, share=0.01)
    assert [pace.every(cost) for cost in (0.0, 0.02, 0.1, 0.3, 2.0)] == [5.0, 5.0, 10.0, 30.0, 60.0]


def test_a_small_site_on_a_busy_machine_is_swept_as_often_as_on_a_quiet_one() -> None:
    pace = Pace()
    assert pace.every(cost_of(took_s=1.5, records=6)) < 6.0
    assert pace.every(cost_of(took_s=1.5, records=10_000)) == 60.0
    assert cost_of(took_s=0.02, records=10_000) == 0.02


def test_the_next_sweep_is_due_when_its_time_has_come() -> None:
    bench = Bench()
    bench.clock.at += 2.0
    assert bench.records.due_in(busy=False) == 3.0
    assert bench.records.due_in(busy=True) == 0.0
