"""Which of Slurm's records a turn reads: those that it is about, and all of them only when a sweep is due or needed."""

from dataclasses import replace

from steward.model.ids import JobId
from steward.model.observed import Freshness, Subject
from steward.ports import Retryable
from steward.workflows.book import Pace, cost_of
from tests.builders.picture import names
from tests.fakes.records_bench import ALL, N2, Bench, nodes


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
