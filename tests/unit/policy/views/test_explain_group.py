"""`explain` of groups, of their nodes, and of jobs that wait before a closed gate."""

from typing import Any

import pytest

from steward.model.group import Goal, GroupStatus, Rollout, RolloutState, Version
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.partition import Gate
from steward.model.setup import SetupReport, SetupState
from steward.model.slot import Hitch, SlotStep
from steward.views.explain import explain_job, explain_node
from steward.views.explain_group import explain_group
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.orders import after, an_update, workers
from tests.builders.picture import T0, n

CLOSED = Gate(partition="dev", open=False, set_at=T0, why="group workers waits for its minimum")


def of_group(picture: ApiPicture, name: str = "workers") -> str:
    return "\n".join(explain_group(name, picture.seen, picture.want, picture.memory, T0))


def of_job(picture: ApiPicture) -> str:
    return "\n".join(explain_job(JobId(7), picture.seen, picture.want, picture.memory, T0))


def of_node(picture: ApiPicture, node: str) -> str:
    return "\n".join(explain_node(n(node), picture.seen, picture.want, picture.memory, T0))


def gated(**slot: Any) -> ApiPicture:
    """Two of three serve, the third is refused for want of capacity; the clock runs."""
    default = {
        "step": SlotStep.WAITING,
        "hitch": Hitch.CAPACITY,
        "tries": 3,
        "trouble": "no capacity for ml.p5",
        "next_try": T0 + 90,
        "entered": T0 - 30,
    }
    picture = an_api_cluster(workers=3).slot("workers-3", **{**default, **slot})
    return picture.change_group(
        "workers",
        status=GroupStatus.UPDATING,
        goal=Goal(target=3, minimum=3),
        good=Goal(target=2, minimum=1),
        minimum_since=T0 - 3600,
    ).remember(gates={"dev": CLOSED})


def queued(picture: ApiPicture, **fields: Any) -> ApiPicture:
    default: dict[str, Any] = {"state": JobState.PENDING, "reason": "PartitionDown", "partition": "dev"}
    job = Job(id=JobId(7), name="train", user_id=1000, **{**default, **fields})
    return picture.see(jobs={job.id: job})


def test_a_group_tells_its_numbers() -> None:
    text = of_group(an_api_cluster(workers=3))
    assert "workers (Compute): InService; 3 in service, at least 0 wanted, 3 in all." in text


def test_a_missing_slot_tells_what_it_waits_for_and_what_it_lacks() -> None:
    checks = gated(step=SlotStep.VERIFY, entered=T0 - 30, next_try=T0 - 90).agent("workers-3", checked_at=T0 - 1)
    text = of_group(checks.node("workers-3", responding=False))
    assert "workers-3: verify for 30 s; failed 3 times (capacity): no capacity for ml.p5. Waits for its checks" in text
    assert "slurmd of workers-3 has not registered." in text
    assert "next try" not in text
    unheard = gated(step=SlotStep.PROVISION, tries=0, hitch=Hitch.NONE, trouble="", next_try=0.0)
    silent = of_group(unheard.agent("workers-3", connected=False))
    assert "workers-3: provision for 30 s. Waits for its agent to connect, at the latest in" in silent
    assert "the agent of workers-3 is not connected." in silent
    assert "the agent of workers-3 is not connected." in of_job(queued(unheard.agent("workers-3", connected=False)))


def test_many_missing_slots_do_not_flood_the_reader() -> None:
    picture = an_api_cluster(workers=30)
    for i in range(1, 31):
        picture = picture.slot(f"workers-{i}", step=SlotStep.LAUNCH)
    assert "... and 10 more on their way." in of_group(picture)


def test_a_software_update_tells_how_far_it_is() -> None:
    rollout = Rollout(
        state=RolloutState.IN_PROGRESS,
        wanted=Version(serial=7),
        previous=Version(),
        started=T0,
        failures=1,
        why="workers-2: exit status 1",
        next_batch_at=T0 + 60,
    )
    picture = an_api_cluster(workers=3).change_group("workers", rollout=rollout, version=rollout.wanted)
    text = of_group(picture.slot("workers-1", version=rollout.wanted))
    assert "InProgress: 1 of 3 nodes are brought to the new version" in text
    assert "1 bring-up failed (workers-2: exit status 1); the next batch begins in 60 s" in text


def test_a_scaling_under_way_is_told_until_another_wish_takes_its_place() -> None:
    text = of_group(after(an_update(workers(6)), after(an_update(workers(5)), an_api_cluster())))
    assert "to 6 instances" in text
    assert "to 5 instances" not in text


def test_a_job_before_an_open_gate_hears_nothing_of_it() -> None:
    opened = Gate(partition="dev", open=True, set_at=T0)
    assert "closed" not in of_job(queued(gated().remember(gates={"dev": opened})))
    assert "closed" not in of_job(queued(gated(), state=JobState.RUNNING))
    assert "closed" not in of_job(queued(gated(), partition="other"))


def test_a_job_that_may_go_to_several_partitions_hears_of_the_closed_one() -> None:
    assert "its partition is closed" in of_job(queued(gated(), partition="other,dev"))


def test_a_node_tells_of_its_slot() -> None:
    text = of_node(gated(), "workers-3")
    assert "of group workers: waiting for 30 s" in text
    assert "Waits for its turn to be launched" in text
    assert "No provider can replace it" not in text


def test_hostile_text_stays_on_one_line() -> None:
    lines = explain_group("workers", *_parts(gated(trouble="bad\nline\x1b[31m")))
    assert all(line.isprintable() for line in lines)


def _parts(picture: ApiPicture) -> tuple[Any, ...]:
    return picture.seen, picture.want, picture.memory, T0


def test_a_job_behind_a_group_that_went_back_to_nothing_hears_why_it_waits() -> None:
    """Its gate is open: nothing is waited for any more."""
    opened = Gate(partition="dev", open=True, set_at=T0)
    picture = an_api_cluster(workers=0).change_group(
        "workers",
        goal=Goal(target=0, minimum=0),
        message="went back to its last size: its minimum was not there in time",
    )
    text = of_job(queued(picture.remember(gates={"dev": opened}), node_count=2, reason="ReqNodeNotAvail"))
    assert "The job asks for 2 nodes, and partition dev has 0 in service." in text
    assert "0 in service, at least 0 wanted, 0 in all" in text
    assert "went back to its last size" in text


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (SlotStep.PROVISION, "Waits for its agent to connect"),
        (SlotStep.SETUP, "Waits for its lifecycle scripts to end"),
        (SlotStep.VERIFY, "slurmd of workers-2 has not registered"),
    ],
)
def test_a_node_on_its_way_says_what_it_waits_for(step: SlotStep, told: str) -> None:
    picture = an_api_cluster().slot("workers-2", step=step, entered=T0 - 100)
    picture = picture.node("workers-2", responding=False).agent("workers-2", checked_at=T0, findings=())
    text = of_node(picture, "workers-2")
    assert told in text
    assert '", or "' not in text


def test_a_source_that_cannot_be_read_is_told_while_it_is_tried_again() -> None:
    waits = SetupReport(token="t", state=SetupState.RUNNING, step="download", why="s3://x: no answer; again in 4 s")
    picture = an_api_cluster().slot("workers-2", step=SlotStep.SETUP, entered=T0 - 100)
    text = of_node(picture.agent("workers-2", setup=waits), "workers-2")
    assert "Waits for its lifecycle scripts to end" in text
    assert ": download: s3://x: no answer; again in 4 s." in text
