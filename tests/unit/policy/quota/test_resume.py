"""A job that opted in and is evicted: its signal, its way back, its history."""

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import RequeueJob
from steward.model.ask import AskKind
from steward.model.ids import JobId
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, WEAK, tres
from tests.builders.quota_site import borrowed_and_wanted_back, done


def reclaimed(can: Capabilities) -> Picture:
    """Job 3, which opted in, borrowed and is to be evicted for job 4."""
    picture = borrowed_and_wanted_back(can).opted_in(3)
    picture, _ = done(picture)
    return done(picture)[0]


def back_in_the_queue(picture: Picture) -> Picture:
    return picture.requeued(3, qos="stw-a-b", eligible=picture.now + 120, requested=tres(2))


@pytest.mark.parametrize("can", [LISTS, WEAK])
def test_being_evicted_costs_no_resume_blames_no_node_and_is_in_the_history(can: Capabilities) -> None:
    picture = back_in_the_queue(reclaimed(can).after(70)).failing("n2")
    memory = done(picture)[0].memory.jobs[JobId(3)]
    assert (memory.resumes, memory.unproven) == (0, 0)
    last = memory.attempts[-1]
    assert (last.why.rule, last.culprits) == ("resume.reclaimed", frozenset())
    assert "is evicted for job 4 of team b" in last.why.evidence[0]


def test_nodes_of_a_run_that_was_evicted_are_not_kept_for_it() -> None:
    plan = back_in_the_queue(reclaimed(LISTS)).plan()
    assert not any(type(action).__name__ in ("KeepNodes", "SetNice") for action in plan.actions)


def test_a_job_that_fails_on_its_checkpoint_signal_is_requeued() -> None:
    picture = reclaimed(WEAK).ask(AskKind.BATCH, id=3, node="n2", status=15)
    plan = picture.plan()
    assert [each.job for each in plan.actions if isinstance(each, RequeueJob)] == [3]
    assert plan.memory.jobs[JobId(3)].resumes == 0
