"""A requeued job is not started again in the second in which its run ended, and no later than it must."""

from tests.builders.picture import a_cluster
from tests.unit.policy.test_requeued import nudges


def test_a_job_is_not_started_in_the_second_in_which_it_ended() -> None:
    picture = a_cluster().job().opted_in().then(0.4).requeued()
    assert nudges(picture.then(0.6)) == []
    assert len(nudges(picture.then(0.65))) == 1


def test_a_job_whose_run_was_seen_to_end_in_an_earlier_second_is_nudged_as_soon_as_it_is_clean() -> None:
    ends = a_cluster().job().opted_in().then(0.4).requeued().change_job(flags=frozenset({"COMPLETING"}))
    clean = ends.then(0.8).change_job(flags=frozenset())
    assert len(nudges(clean)) == 1


def test_a_job_that_is_clean_in_the_second_in_which_its_run_ended_waits_for_the_next() -> None:
    ends = a_cluster().job().opted_in().then(0.2).requeued().change_job(flags=frozenset({"COMPLETING"}))
    clean = ends.then(0.5).change_job(flags=frozenset())
    assert nudges(clean) == []
    assert len(nudges(clean.then(0.35))) == 1
