"""What a turn is about: those who ask, what is open, who fell silent, and nothing else."""

from dataclasses import replace

import pytest

from steward.model.ask import OptedIn
from steward.model.case import CaseStep
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.resume import JobMemory, KeptNodes
from steward.model.resume_mode import ResumeMode
from steward.model.witness import Witness
from steward.workflows.attention import Attention, Known, jobs_by_node, records_to_read
from tests.builders.picture import Picture, a_cluster, names
from tests.fakes.applier import an_ask

ON = ResumeMode.parse("1")
J7 = JobId(7)


def about(picture: Picture, *, read_at: float = 0.0) -> Attention:
    seen = picture.seen
    places = jobs_by_node()
    places.follow(seen.jobs)
    known = Known(
        jobs=seen.jobs,
        places=places,
        job_at=lambda job: read_at,
        views=seen.agents,
        asks=seen.asks,
        opted=seen.opted_in,
    )
    return records_to_read(picture.memory, known, picture.now)


def remembered(picture: Picture, **fields: object) -> Picture:
    """Job 7 opted in and ran on n1 to n3."""
    mem = JobMemory(id=J7, uid=1000, mode=ON, opted_at=0.0, nodes=names("n1", "n2", "n3"))
    mem = replace(mem, **fields)  # type: ignore[arg-type]
    return replace(picture, memory=replace(picture.memory, jobs={J7: mem}))


def told(picture: Picture, at: float, restart: int = 0) -> Picture:
    return picture.see(opted_in=(OptedIn(job=J7, uid=1000, mode=ON, restart=restart, at=at),))


def test_a_quiet_cluster_is_not_looked_at() -> None:
    found = about(remembered(told(a_cluster().job(), at=10.0)))
    assert not found.asked
    assert not found.open
    assert not found.new
    assert not found.unseen


def test_a_job_that_somebody_asks_about_is_looked_at_with_all_its_nodes() -> None:
    picture = remembered(a_cluster().job(on=("n1", "n2"))).see(asks=(an_ask(),))
    assert about(picture).asked.jobs == {J7}
    assert about(picture).asked.nodes == names("n1", "n2", "n3")


def test_a_node_under_repair_is_looked_at_with_the_jobs_on_it() -> None:
    picture = a_cluster().job(on=("n2", "n3")).job(8, on=("n4",)).failing("n2").then()
    assert about(picture).open.nodes == names("n2")
    assert about(picture).open.jobs == {J7}


def test_a_run_that_lost_a_node_under_repair_is_looked_at() -> None:
    picture = remembered(a_cluster().job(on=("n3",)).failing("n2").then())
    assert about(picture).open.jobs == {J7}


def test_a_node_that_a_person_must_mend_is_left_to_the_sweep() -> None:
    picture = a_cluster().failing("n2").then()
    held = {id: replace(case, step=CaseStep.HELD) for id, case in picture.memory.cases.items()}
    assert not about(replace(picture, memory=replace(picture.memory, cases=held))).open


def test_a_node_that_just_fell_silent_is_looked_at_when_the_second_witness_has_spoken() -> None:
    picture = a_cluster().job(on=("n2",)).agent_lost("n2", ago_s=0.2)
    assert not about(picture).open
    found = about(picture.witnessed("n2", Witness.REFUSED)).open
    assert found.nodes == names("n2")
    assert found.jobs == {J7}


def test_the_other_nodes_of_a_small_run_that_lost_one_are_looked_at_too() -> None:
    lost = (
        remembered(a_cluster().job(on=("n1", "n2", "n3"))).agent_lost("n2", ago_s=0.2).witnessed("n2", Witness.REFUSED)
    )
    assert about(lost).open.nodes == names("n1", "n2", "n3")
    many = frozenset(NodeName(f"m{number}") for number in range(20))
    assert about(remembered(lost, nodes=many | names("n2"))).open.nodes == names("n2")


def test_a_node_that_is_silent_for_a_while_is_left_to_the_sweep() -> None:
    assert not about(a_cluster().lost("n2").after(120.0)).open


def test_a_job_that_is_brought_back_is_looked_at_and_its_nodes_while_they_clean_up() -> None:
    picture = remembered(a_cluster().job(on=(), state=JobState.PENDING), pending_from=a_cluster().now)
    assert about(picture).open.jobs == {J7}
    assert about(picture).open.nodes == names("n1", "n2", "n3")
    assert about(picture.after(30.0)).open.nodes == frozenset()
    assert about(picture.after(30.0)).open.jobs == {J7}
    cleaning = picture.change_job(flags=frozenset({"COMPLETING"})).after(30.0)
    assert about(cleaning).open.nodes == names("n1", "n2", "n3")


def test_a_job_that_has_waited_for_long_is_left_to_the_sweep() -> None:
    picture = remembered(a_cluster().job(on=(), state=JobState.PENDING), pending_from=a_cluster().now)
    assert not about(picture.after(100.0)).open


def test_nodes_that_are_kept_for_a_job_are_looked_at() -> None:
    now = a_cluster().now
    kept = KeptNodes(restart=0, nodes=frozenset({NodeName("n5")}), since=now, until=now + 100)
    picture = remembered(a_cluster().job(on=()), kept=kept)
    assert about(picture).open.nodes == names("n5")
    assert not about(remembered(a_cluster().job(on=()), kept=replace(kept, freed=now))).open


def test_a_job_that_was_told_of_is_looked_at_once() -> None:
    picture = told(a_cluster(), at=50.0)
    assert about(picture, read_at=49.0).new == {J7: 50.0}
    assert about(picture, read_at=51.0).new == {}


def test_a_new_run_that_was_told_of_is_looked_at() -> None:
    picture = told(a_cluster().job(restarts=1), at=50.0, restart=2)
    assert about(picture, read_at=49.0).new == {J7: 50.0}
    assert about(told(a_cluster().job(restarts=2), at=50.0, restart=2), read_at=49.0).new == {}


def test_all_parts_of_a_heterogeneous_job_are_looked_at() -> None:
    picture = a_cluster().job(7, het_job_id=J7).job(8, on=("n4",), het_job_id=J7).see(asks=(an_ask(),))
    assert about(picture).asked.jobs == {7, 8}
    assert "n4" in about(picture).asked.nodes


def test_when_the_last_agent_was_lost_is_known_for_a_moment() -> None:
    picture = a_cluster().agent_lost("n2", ago_s=0.2)
    assert about(picture).lost == pytest.approx(picture.now - 0.2)
    assert about(picture.after(10.0)).lost == 0.0
    assert about(a_cluster()).lost == 0.0
