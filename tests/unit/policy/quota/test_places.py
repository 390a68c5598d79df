"""Where Steward itself makes room: who is evicted is whoever lets the waiting job start, on its own nodes."""

from dataclasses import replace

from steward.model.action import RequeueJob, SignalJob
from steward.model.ids import JobId
from steward.model.quota import Strategy
from tests.builders.picture import Picture
from tests.builders.quota import WEAK, tres
from tests.builders.quota_site import a_site, done, own, runs, settled, waits


def told_to_go(picture: Picture) -> list[int]:
    _, actions = done(picture)
    return sorted(each.job for each in actions if isinstance(each, SignalJob | RequeueJob))


def halves(*, machines: int = 2) -> Picture:
    """Two borrowers on each of two machines: the two newest are on different ones."""
    site = a_site(WEAK, own("a", 0), own("b", 4 * machines), machines=machines)
    site = runs(runs(site, 1, "a", 2, "b", "n1", started=1000.0), 2, "a", 2, "b", "n2", started=2000.0)
    return settled(runs(runs(site, 3, "a", 2, "b", "n1", started=4000.0), 4, "a", 2, "b", "n2", started=3000.0))


def test_a_whole_machine_is_made_free_though_the_newest_borrowers_are_on_two() -> None:
    """The order of age would take jobs 3 and 4."""
    assert told_to_go(waits(halves(), 5, "b", 4)) == [2, 4]


def test_where_any_machine_does_the_newest_go_as_ever() -> None:
    assert told_to_go(waits(halves(), 5, "b", 2)) == [3]


def test_two_machines_at_once() -> None:
    """Each of three has a job that may not be taken, or two that may."""
    site = a_site(WEAK, own("a", 2), own("b", 10), machines=3)
    site = runs(runs(site, 1, "a", 2, "g", "n1"), 2, "a", 2, "b", "n1", started=9000.0)
    site = runs(runs(site, 3, "a", 2, "b", "n2", started=8000.0), 4, "a", 2, "b", "n2", started=2000.0)
    site = settled(runs(runs(site, 6, "a", 2, "b", "n3", started=7000.0), 7, "a", 2, "b", "n3", started=1000.0))
    assert told_to_go(waits(site, 5, "b", 8, node_count=2)) == [3, 4, 6, 7]


def test_the_machine_where_fewer_jobs_go_is_taken() -> None:
    """The two newest are on different machines; one job of the third is one job."""
    site = runs(halves(machines=3), 6, "a", 4, "b", "n3", started=500.0)
    assert told_to_go(waits(settled(site), 5, "b", 4)) == [6]


def test_one_who_owns_is_not_taken_though_it_lets_the_job_start() -> None:
    site = a_site(WEAK, own("a", 2), own("b", 6))
    site = runs(runs(site, 1, "a", 2, "g", "n1", started=9.0), 2, "a", 2, "b", "n1", started=3.0)
    site = settled(runs(runs(site, 3, "a", 2, "b", "n2", started=2.0), 4, "a", 2, "b", "n2", started=1.0))
    assert told_to_go(waits(site, 5, "b", 4)) == [3, 4]


def test_nobody_goes_in_vain() -> None:
    """On each machine a job that the quota covers is in the way."""
    site = a_site(WEAK, own("a", 4), own("b", 4))
    site = runs(runs(site, 1, "a", 2, "g", "n1"), 2, "a", 2, "g", "n2")
    site = settled(runs(runs(site, 3, "a", 2, "b", "n1", started=2.0), 4, "a", 2, "b", "n2", started=3.0))
    assert told_to_go(waits(site, 5, "b", 4)) == []
    assert told_to_go(waits(site, 5, "b", 2)) == [4]


def test_free_halves_of_two_machines_are_no_machine() -> None:
    """So much is free in all, and borrowers are in the way on each machine."""
    site = a_site(WEAK, own("a", 0), own("b", 8))
    site = settled(runs(runs(site, 1, "a", 2, "b", "n1", started=1.0), 2, "a", 2, "b", "n2", started=2.0))
    assert told_to_go(waits(site, 5, "b", 4, reason="Resources")) == [2]
    assert told_to_go(waits(site, 5, "b", 2, reason="Resources")) == []


def test_what_others_borrowed_of_a_team_that_lends_nothing_is_not_collected_with_an_owners_claim() -> None:
    """Team c has nothing to run: b's job starts on what the newest borrower leaves."""
    site = a_site(WEAK, own("a", 2), own("b", 2), own("c", 4, strategy=Strategy.DONT_LEND))
    site = runs(runs(site, 1, "a", 2, "g", "n1"), 2, "a", 2, "b", "n1", started=2000.0)
    site = settled(runs(site, 3, "a", 4, "b", "n2", started=1000.0))
    assert told_to_go(waits(site, 5, "b", 1)) == [2]


def test_a_total_on_two_nodes_needs_an_accelerator_on_each() -> None:
    """`-N2 --gpus=2`: of n1 all GPUs are in use by a job that the quota covers."""
    site = a_site(WEAK, own("a", 4), own("b", 4))
    site = runs(runs(site, 1, "a", 4, "g", "n1"), 2, "a", 2, "b", "n2", started=2.0)
    site = settled(runs(site, 3, "a", 2, "b", "n2", started=3.0))
    assert told_to_go(waits(site, 5, "b", 2, is_total=True, node_count=2, most_nodes=2)) == []
    assert told_to_go(waits(site, 5, "b", 2, is_total=True, node_count=1, most_nodes=2)) == [3]


def test_once_chosen_nobody_else_is() -> None:
    picture, _ = done(waits(halves(), 5, "b", 4))
    assert told_to_go(picture) == []
    assert {id for id, each in picture.memory.quota_jobs.items() if each.yielding} == {JobId(2), JobId(4)}


def test_cpus_of_the_machine_count_as_well() -> None:
    """The GPUs of n2 would do, but the CPUs there are in use by a job that owns nothing to give back."""
    site = a_site(WEAK, own("a", 0), own("b", 8))
    site = runs(site, 1, "other", 0, on="n2", requested=tres(cpus=47), allocated=tres(cpus=47))
    site = settled(runs(runs(site, 2, "a", 4, "b", "n1", started=2.0), 3, "a", 1, "b", "n2", started=3.0))
    site = waits(site, 5, "b", 4)
    assert told_to_go(site) == [2]


def test_memory_that_slurm_conf_does_not_tell_bounds_nothing() -> None:
    site = halves()
    nodes = {name: replace(node, memory_mb=1) for name, node in site.seen.nodes.items()}
    assert told_to_go(waits(site.see(nodes=nodes), 5, "b", 4)) == [2, 4]
