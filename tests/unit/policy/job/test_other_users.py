"""A node on which several other users' jobs fail is evidence."""

import pytest

from steward.model.action import RequeueJob
from steward.model.job import JobState
from tests.builders.picture import USER, Picture, n, names
from tests.builders.resumed import failed, wishes


def others_fail_on(node: str, *users: int, picture: Picture) -> Picture:
    for number, user in enumerate(users):
        over = {"state": JobState.FAILED, "user_id": user, "ended": picture.now - 5.0, "batch_host": n(node)}
        picture = picture.job(100 + number, on=(node,), **over)
    return picture


def test_a_node_on_which_several_other_users_jobs_fail_is_evidence() -> None:
    (requeue,) = wishes(others_fail_on("n2", 2001, 2002, picture=failed("1")), RequeueJob)
    assert isinstance(requeue, RequeueJob)
    assert requeue.exclude == names("n2")
    assert "jobs of 2 other users failed on it" in str(requeue.why)


@pytest.mark.parametrize("users", [(2001, 2001, 2001), (USER, USER), (2001, USER)])
def test_one_users_failing_jobs_say_nothing_of_their_node(users: tuple[int, ...]) -> None:
    assert wishes(others_fail_on("n2", *users, picture=failed("1")), RequeueJob) == []


def test_jobs_that_fail_everywhere_say_nothing_of_a_node() -> None:
    picture = failed("1")
    for number, node in enumerate(("n1", "n2", "n3", "n4")):
        for user in (2001, 2002):
            over = {"state": JobState.FAILED, "user_id": user, "ended": picture.now - 5.0}
            picture = picture.job(1000 + 10 * number + user % 10, on=(node,), **over)
    assert wishes(picture, RequeueJob) == []
