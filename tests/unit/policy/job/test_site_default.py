"""The site opts in jobs that say nothing; a job's own word is stronger."""

from typing import Any

import pytest

from steward.model.resume_policy import ResumeDefault
from tests.builders.picture import T0, USER, Picture, a_cluster
from tests.builders.resumed import J, memory, mode

DAY_S = 86_400.0
DEFAULT = ResumeDefault(partition="main", qos="high", mode="any:2")


def by_default(**job: Any) -> Picture:
    return a_cluster().resume(default=(DEFAULT,)).job(**job)


def test_the_site_opts_in_jobs_that_say_nothing() -> None:
    found = memory(by_default(qos="high"))
    assert (found.by_default, found.mode.text, found.uid) == (True, "any:2", USER)


@pytest.mark.parametrize("job", [{"qos": "low"}, {"qos": "high", "is_batch": False}])
def test_only_batch_jobs_that_fit_are_opted_in(job: dict[str, Any]) -> None:
    assert by_default(**job).plan().memory.jobs == {}


def test_a_job_that_has_just_begun_may_still_say_what_it_wants() -> None:
    young = by_default(qos="high", started=a_cluster().now - 5)
    assert young.plan().memory.jobs == {}
    assert young.plan().wake_at is not None


def test_a_jobs_own_no_is_stronger_than_the_sites_default_also_when_it_comes_late() -> None:
    assert by_default(qos="high").opted_in(mode=mode("0")).plan().memory.jobs == {}
    late = by_default(qos="high").then(1.0).opted_in(mode=mode("0")).then(1.0)
    assert late.memory.jobs == {}
    assert late.see(opted_in=()).plan().memory.jobs == {}


def test_a_jobs_own_no_stands_as_long_as_the_job_is_there_though_nobody_says_it_again() -> None:
    said = by_default(qos="high").opted_in(mode=mode("0")).then(1.0).see(opted_in=())
    later = said.then(2 * DAY_S).then(1.0)
    assert later.plan().memory.jobs == {}
    assert set(later.memory.bystanders) == {J}
    assert later.see(jobs={}).plan().memory.bystanders == {}


def test_a_later_job_of_the_same_id_says_for_itself() -> None:
    said = by_default(qos="high", submitted=T0 - 90.0).opted_in(mode=mode("0")).then(1.0).see(opted_in=())
    assert set(said.change_job(submitted=T0 - 30.0).plan().memory.jobs) == {J}


def test_a_jobs_own_options_are_stronger_than_the_sites_default() -> None:
    found = memory(by_default(qos="high").then(1.0).opted_in(mode=mode("1,max=2")))
    assert (found.by_default, found.mode.text) == (False, "1,max=2")


def test_another_users_no_changes_nothing() -> None:
    assert by_default(qos="high").then(1.0).opted_in(mode=mode("0"), uid=1).plan().memory.jobs != {}
