"""How old a record may be: what was read after the event, and a moment ago, is not read again; what is dear waits."""

from steward.model.observed import Freshness
from steward.ports import Retryable
from tests.fakes.records_bench import ALL, Bench, nodes


def test_what_was_read_in_this_turn_is_not_read_again_to_confirm_it() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.look(open=nodes("n1"))
    bench.clock.at += 0.1
    assert bench.confirm("n1") == []
    assert bench.confirm("n1", "n2", jobs=[7]) == [{"n2"}, {7}]
    assert bench.confirm("n2", jobs=[7]) == []


def test_a_record_that_was_read_a_moment_ago_is_not_read_again() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.look(open=nodes("n1"))
    bench.clock.at += 0.2
    assert bench.look(open=nodes("n1")) == []
    assert bench.confirm("n1") == []
    bench.clock.at += 0.2
    assert bench.look(open=nodes("n1")) == [{"n1"}]


def test_what_somebody_asks_about_is_read_once_after_he_asked() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.look(open=nodes("n1"))
    bench.clock.at += 0.1
    asked_at = bench.clock.at
    bench.clock.at += 0.02
    assert bench.look(asked=nodes("n1"), asked_at=asked_at) == [{"n1"}]
    bench.clock.at += 0.1
    assert bench.look(asked=nodes("n1"), asked_at=asked_at) == []


def test_after_we_did_something_every_turn_looks_how_far_slurm_is_with_it() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.records.changed(nodes("n1"))
    assert bench.look(open=nodes("n1", "n2")) == [{"n1", "n2"}]
    bench.clock.at += 0.05
    assert bench.look(open=nodes("n1", "n2")) == [{"n1", "n2"}]


def test_a_shim_s_answer_does_not_wait_for_one_more_look_at_what_was_read_since_it_asked() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.records.changed(nodes("n1"))
    asked_at = bench.clock.at
    bench.clock.at += 0.01
    assert bench.look(asked=nodes("n1"), open=nodes("n1", "n2"), asked_at=asked_at) == [{"n1", "n2"}]
    bench.clock.at += 0.05
    assert bench.look(asked=nodes("n1"), open=nodes("n1", "n2"), asked_at=asked_at) == [{"n2"}]
    bench.records.changed(nodes("n1"))
    bench.clock.at += 0.01
    assert bench.look(asked=nodes("n1"), asked_at=asked_at) == [{"n1"}]
    bench.clock.at += 0.2
    assert bench.look(asked=nodes("n1"), open=nodes("n1"), asked_at=asked_at) == [{"n1"}]


def test_everything_was_read_in_a_turn_that_waited_for_the_sweep() -> None:
    bench = Bench()
    bench.clock.at += 0.1
    assert bench.confirm("n1", jobs=[7]) == []


def test_what_cannot_be_confirmed_makes_the_picture_old() -> None:
    bench = Bench()
    bench.clock.at += 0.5
    bench.look()
    bench.slurm.refuse = Retryable("slurmctld is away")
    bench.confirm("n1")
    assert bench.fresh is Freshness.OLD


def test_a_dear_sweep_waits_for_a_few_seconds_while_a_recovery_is_in_a_hurry() -> None:
    bench = Bench(dear=-1.0)
    for at in (0.9, 5.9):
        bench.clock.at = 1000.0 + at
        assert bench.look(busy=True, hurried=True) == []
    assert 0.0 < bench.records.due_in(busy=True) <= 0.2
    bench.clock.at += 0.2
    assert bench.look(busy=True, hurried=True) == [ALL, ALL]
    bench.clock.at += 1.1
    assert bench.look(busy=True) == [ALL, ALL]


def test_one_that_is_late_when_the_hurry_begins_waits_as_long() -> None:
    bench = Bench(dear=-1.0, quiet_s=30.0)
    bench.clock.at += 20.0
    assert bench.look(hurried=True) == []
    assert bench.look(busy=True, hurried=True) == []
    bench.clock.at += 4.9
    assert bench.look(busy=True, hurried=True) == []
    bench.clock.at += 0.2
    assert bench.look(busy=True, hurried=True) == [ALL, ALL]


def test_when_the_hurry_is_over_the_one_that_is_late_begins() -> None:
    bench = Bench(dear=-1.0, quiet_s=30.0)
    bench.clock.at += 20.0
    assert bench.look(busy=True, hurried=True) == []
    bench.clock.at += 1.0
    assert bench.look(busy=True) == [ALL, ALL]


def test_one_that_the_quiet_pace_had_due_is_put_off_no_longer_than_from_then() -> None:
    bench = Bench(dear=-1.0, quiet_s=30.0)
    bench.clock.at += 33.0
    assert bench.look(hurried=True) == []
    bench.clock.at += 2.1
    assert bench.look(busy=True, hurried=True) == [ALL, ALL]


def test_so_it_does_right_after_we_did_something() -> None:
    bench = Bench(dear=-1.0)
    bench.clock.at += 1.1
    bench.records.changed(nodes("n1"))
    assert bench.look(busy=True) == [{"n1"}]
    bench.clock.at += 5.0
    assert bench.look(busy=True) == [ALL, ALL]


def test_one_that_a_turn_needs_does_not_wait() -> None:
    bench = Bench(dear=-1.0)
    bench.clock.at += 1.1
    bench.records.changed(None)
    assert bench.look(busy=True, hurried=True) == [ALL, ALL]


def test_all_jobs_are_read_once_when_an_agent_is_lost_because_its_node_may_have_a_job_since_the_last_sweep() -> None:
    bench = Bench()
    bench.clock.at += 2.0
    lost = bench.clock.at - 0.1
    assert bench.look(hurried=True, lost=lost) == [ALL]
    assert bench.look(hurried=True, lost=lost) == []
    dear = Bench(dear=-1.0)
    dear.clock.at += 2.0
    assert dear.look(hurried=True, lost=dear.clock.at - 0.1) == [], "where that costs much the recovery does not wait"
