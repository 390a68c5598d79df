"""A job that Slurm runs on without its script is requeued."""

from typing import Any

import pytest

from steward.model.action import RequeueJob
from steward.model.ask import AskKind
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId
from steward.model.job import JobState
from steward.model.job_sight import Doing
from steward.model.resume import Decision
from tests.builders.picture import T0, USER, Picture, a_cluster, names
from tests.builders.requeued import J
from tests.builders.sights import a_sight


def without_its_script() -> Picture:
    """The job was submitted with --no-kill: n1, where its script ran, died, and Slurm goes on with the other nodes."""
    return a_cluster().job().opted_in().then().lost("n1").then().marked("n1").change_job(nodes=names("n2", "n3"))


def test_a_job_that_slurm_runs_on_without_its_script_is_requeued_once() -> None:
    requeues = [a for a in without_its_script().plan().actions if isinstance(a, RequeueJob)]
    assert [(a.job, a.why.rule) for a in requeues] == [(J, "resume.no_script")]
    assert [a for a in without_its_script().then(0.1).plan().actions if isinstance(a, RequeueJob)] == []


def test_a_job_without_its_script_and_without_the_option_is_left_alone() -> None:
    picture = a_cluster().job().lost("n1").then().marked("n1").change_job(nodes=names("n2", "n3"))
    assert [a for a in picture.plan().actions if isinstance(a, RequeueJob)] == []


def test_a_job_without_its_script_that_used_up_its_resumes_is_told_to_people() -> None:
    plan = without_its_script().resume(max_resumes=0).plan()
    assert [a for a in plan.actions if isinstance(a, RequeueJob)] == []
    assert "cancel it" in next(e.text for e in plan.events if e.kind == "job.budget")


# A node that was dead and is back while no head looked, and that Slurm did not miss.

BEGAN = ("n1", "boot-1")
"""The batch host, and the boot in which the script of the job began."""


def running(on: tuple[str, ...] = ("n1", "n2", "n3"), **word: Any) -> Picture:
    """The job has begun 600 s ago, as its nodes tell; nothing but the head's memory is left of that."""
    picture = a_cluster().job(on=on, **word.pop("job", {})).opted_in(**{"by": ("n2",), "script": BEGAN, **word})
    return picture.then(0.1).then(100.0).see(opted_in=())


def boots(picture: Picture, name: str = "n1", **agent: Any) -> Picture:
    """The node has booted; its agent has told what it knows, which is nothing of the job."""
    booted = Incarnation(instance=InstanceId(f"i-{name}"), boot=BootId("boot-2"))
    told = {"incarnation": booted, "reported_at": picture.now, **agent}
    return picture.node(name, slurmd_started=picture.now - 30.0).agent(name, **told).then(0.1)


def requeues(picture: Picture) -> list[RequeueJob]:
    return [action for action in picture.plan().actions if isinstance(action, RequeueJob)]


def test_a_job_whose_batch_host_has_booted_under_it_is_requeued_once_and_the_node_is_not_blamed() -> None:
    picture = running()
    assert requeues(picture) == []
    booted = Incarnation(instance=InstanceId("i-n1"), boot=BootId("boot-2"))
    back = picture.node("n1", slurmd_started=picture.now - 30.0).agent("n1", incarnation=booted)
    (requeue,) = requeues(back)
    assert (requeue.why.rule, requeue.exclude) == ("resume.no_script", frozenset())
    assert requeue.why.evidence == ("Slurm runs it without its script", "n1: it has booted since the run began there")
    assert requeues(back.then(0.1)) == []
    again = back.then(0.1).requeued().then(1.0)
    (mem,) = again.plan().memory.jobs.values()
    assert (mem.resumes, mem.excluded) == (1, frozenset())


def lost(picture: Picture) -> bool:
    """Whether the job was requeued in the last plan or will be in the next."""
    (mem,) = picture.memory.jobs.values()
    return bool(mem.attempts) or bool(requeues(picture))


def test_it_is_known_by_a_head_that_came_after_all_that_by_its_store_alone() -> None:
    assert lost(boots(running().see(agents_since=T0 + 90.0)))


def test_a_node_that_boots_in_the_second_in_which_the_run_began_has_lost_it_too() -> None:
    """Slurm tells whole seconds."""
    picture = running()
    began = picture.seen.jobs[J].started
    assert lost(boots(picture).node("n1", slurmd_started=began))


@pytest.mark.parametrize(
    "picture",
    [
        running(),
        boots(running(), "n2"),
        boots(running(script=None)),
        boots(running(script=("n2", "boot-1"))),
        boots(running(uid=USER + 1)),
        boots(running(restart=1)),
        boots(running(job={"is_batch": False})),
        boots(running(), reported_at=0.0),
        boots(running(), connected=False, lost_at=T0),
        boots(running().node("n1", slurmd_started=T0 - 20_000)).node("n1", slurmd_started=T0 - 20_000),
    ],
    ids=[
        "no node has booted",
        "another node has",
        "where its script began was never told",
        "not its host told it",
        "another user's claim",
        "a word on another run",
        "no script",
        "its agent has not told all yet",
        "its agent is away",
        "slurmd is older than the run",
    ],
)
def test_a_job_whose_script_may_live_goes_on(picture: Picture) -> None:
    assert not [a for a in (*picture.plan().actions, *picture.then(0.1).plan().actions) if isinstance(a, RequeueJob)]


def test_a_run_that_began_in_the_present_boot_goes_on_however_often_the_head_and_its_agent_come_back() -> None:
    """Slurm begins a batch job again on its node if slurmd was gone before it said that it has it."""
    picture = running()
    booted = Incarnation(instance=InstanceId("i-n1"), boot=BootId("boot-2"))
    back = picture.node("n1", slurmd_started=picture.now - 30.0).agent("n1", incarnation=booted)
    told = back.opted_in(script=("n1", "boot-2")).then(0.1)
    assert told.memory.jobs[J].script_boot == "boot-2"
    away = told.see(opted_in=()).agent("n1", connected=False, lost_at=told.now, leaves=True).then(1.0)
    assert not lost(away.heard("n1").then(5.0))


def test_a_word_that_a_head_keeps_of_an_earlier_boot_is_not_taken_for_the_present_one() -> None:
    """A job of this number ran there before the boot, and the agent was away when this one began after it."""
    booted = Incarnation(instance=InstanceId("i-n1"), boot=BootId("boot-2"))
    kept = a_cluster().job().opted_in(by=("n2",), script=BEGAN).agent("n1", incarnation=booted)
    picture = kept.then(0.1).then(1.0)
    assert picture.memory.jobs[J].script_boot is None
    assert not lost(picture.node("n1", slurmd_started=picture.now).then(1.0))


def test_the_next_run_begins_with_nothing_known() -> None:
    """Its script begins on the booted node, and the agent is away then."""
    picture = boots(running()).requeued().then(1.0)
    again = picture.job(restarts=1, started=picture.now).then(1.0)
    mem = again.memory.jobs[J]
    assert (mem.restarts, mem.script_boot) == (1, None)
    assert requeues(again.node("n1", slurmd_started=again.now).then(5.0)) == []


def test_that_slurm_shows_the_host_of_another_run_says_nothing_of_this_one() -> None:
    """Requeued by Slurm and begun again between two looks: the memory is of the run before."""
    picture = running().change_job(restarts=1, started=T0 + 90.0)
    assert [one.job for one in requeues(boots(picture))] == []


def test_a_suspended_job_has_lost_its_script_too() -> None:
    assert lost(boots(running().change_job(state=JobState.SUSPENDED)))


def test_a_step_that_lost_a_node_so_is_run_again_on_the_nodes_evidence() -> None:
    """Its srun is held until the head is back."""
    asked = boots(running(), "n2").ask(AskKind.STEP, nodes="n[1-3]", status=256)
    told = asked.then(0.1).checked("n1", "n2", "n3").then(0.1)
    (attempt,) = told.plan().memory.jobs[J].attempts
    assert (attempt.decision, attempt.culprits) == (Decision.RETRY, frozenset())
    assert "n2: it has booted since the run began there" in attempt.why.evidence
    assert names("n2") <= told.seen.jobs[J].nodes


@pytest.mark.parametrize(
    "picture",
    [
        boots(running(), "n4"),
        boots(running(), "n2").node("n2", slurmd_started=T0 - 20_000),
        running().node("n2", slurmd_started=T0 + 50.0),
        boots(a_cluster(), "n2").after(1000.0).job().opted_in(by=("n1",)).node("n2", slurmd_started=T0 + 900.0),
    ],
    ids=["not a node of it", "slurmd is older than the run", "slurmd was restarted alone", "before the run began"],
)
def test_a_step_that_failed_by_itself_has_no_such_evidence(picture: Picture) -> None:
    asked = picture.ask(AskKind.STEP, nodes="n[1-3]", status=256).then(0.1).checked("n1", "n2", "n3").then(20.0)
    assert not [text for mem in asked.plan().memory.jobs[J].attempts for text in mem.why.evidence if "booted" in text]


# A node of it, other than the batch host, was dead and is back, and its srun does not notice.


def waiting(picture: Picture, *doing: Doing, on: str = "n1") -> Picture:
    """The job's ranks on one node do this, as its agent sees."""
    return picture.agent(on, sights=(a_sight(picture, on, *(doing or (Doing.WAITS,))),))


def lost_ranks(**word: Any) -> Picture:
    """n2 has booted more than a minute ago, and the ranks on n1 wait."""
    return waiting(boots(running(**word), "n2").then(70.0))


def test_a_job_whose_ranks_wait_for_those_that_a_boot_ended_is_requeued_once_and_no_node_is_blamed() -> None:
    (requeue,) = requeues(lost_ranks())
    assert (requeue.why.rule, requeue.exclude) == ("resume.requeue", frozenset())
    assert "n2: it has booted since the run began there" in requeue.why.evidence
    assert requeues(lost_ranks().then(0.1)) == []
    (mem,) = lost_ranks().then(0.1).requeued().then(1.0).plan().memory.jobs.values()
    assert (mem.resumes, mem.excluded) == (1, frozenset())


def test_what_the_waiting_ranks_do_need_not_be_known() -> None:
    assert len(requeues(waiting(boots(running(), "n2").then(70.0), Doing.UNKNOWN))) == 1


def test_such_a_job_that_used_up_its_resumes_is_told_to_people() -> None:
    plan = lost_ranks().resume(max_resumes=0).plan()
    assert [a for a in plan.actions if isinstance(a, RequeueJob)] == []
    text = next(e.text for e in plan.events if e.kind == "job.budget")
    assert text.startswith("job 7 runs without some of its ranks since n2 died;")


@pytest.mark.parametrize(
    "picture",
    [
        boots(running(), "n2").then(70.0),
        waiting(boots(running(), "n2").then(50.0)),
        waiting(boots(running(), "n4").then(70.0)),
        waiting(boots(running(), "n2").then(70.0), Doing.WAITS, Doing.WORKS),
        waiting(boots(running(), "n2").then(70.0), Doing.BUSY),
        waiting(lost_ranks(), on="n2"),
        waiting(boots(running(), "n2").then(70.0).node("n2", slurmd_started=T0 - 20_000)),
        waiting(running().then(70.0)),
        waiting(boots(running(), "n2", reported_at=0.0).then(70.0)),
        lost_ranks().ask(AskKind.STEP, nodes="n[1-3]", status=256),
        lost_ranks().change_job(restarts=1, started=T0 + 90.0),
    ],
    ids=[
        "no rank is seen",
        "its srun may still end by itself",
        "not a node of it",
        "a rank works",
        "a rank may work",
        "ranks are there",
        "slurmd is older than the run",
        "no node has booted",
        "its agent has not told all yet",
        "its srun has ended and asks",
        "another run",
    ],
)
def test_a_job_goes_on_whose_ranks_may_not_wait_for_a_booted_node(picture: Picture) -> None:
    assert requeues(picture) == []


def test_a_step_that_runs_again_after_the_boot_goes_on() -> None:
    asked = boots(running(), "n2").ask(AskKind.STEP, nodes="n[1-3]", status=256)
    told = asked.then(0.1).checked("n1", "n2", "n3").then(0.1).see(asks=()).then(70.0)
    assert [one.decision for one in told.memory.jobs[J].attempts] == [Decision.RETRY]
    assert requeues(waiting(told)) == []
