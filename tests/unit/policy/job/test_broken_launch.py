"""A job that Slurm could not start goes on elsewhere; a node on which a second user's job could not start is out."""

from dataclasses import replace
from typing import Any

from steward.model.action import AnswerAsk, NudgeJob, RequeueJob
from steward.model.ask import AskKind, OptedIn
from steward.model.case import Case
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.job_report import Lean
from steward.model.resume_mode import ResumeMode
from steward.policy.draft import Draft
from steward.views.explain import job_lines
from tests.builders.failures import a_sign
from tests.builders.picture import ON, T0, USER, Picture, a_cluster, n, names
from tests.builders.resumed import THREE, J, failed, memory, mode, opted, wishes
from tests.builders.slurm_drains import slurm_drains

HELD: dict[str, Any] = {
    "state": JobState.PENDING,
    "nodes": frozenset(),
    "batch_host": None,
    "started": None,
    "reason": "launch failed requeued held",
}
NO_OUTPUT: dict[str, Any] = {"state": JobState.FAILED, "reason": "JobLaunchFailure", "exit_status": 53}


def known(picture: Picture, id: int, mode: ResumeMode = ON, uid: int = USER) -> Picture:
    word = OptedIn(job=JobId(id), uid=uid, mode=mode, restart=0, at=picture.now)
    return picture.see(opted_in=(*picture.seen.opted_in, word))


def held(picture: Picture, id: int = 7, restarts: int = 1) -> Picture:
    """Slurm could not start the job, and holds it."""
    fields = {**HELD, "submitted": picture.now, "node_count": 2, "restarts": restarts}
    return known(picture.job(id, **fields), id).then(1.1).then(1.1)


def ran(picture: Picture, id: int, on: str, uid: int = USER) -> Picture:
    """The job was seen on its only node."""
    return known(picture.job(id, on=(on,), started=picture.now, user_id=uid), id, uid=uid).then(1.0)


def goes_on(picture: Picture, id: int, on: str, restarts: int) -> Picture:
    job: dict[str, Any] = {"state": JobState.RUNNING, "nodes": names(on), "batch_host": n(on), "reason": ""}
    return picture.change_job(id, started=picture.now, restarts=restarts, **job).then(1.0)


def hurt(picture: Picture, id: int, on: str = "n2", elsewhere: str = "n3", uid: int = USER) -> Picture:
    """The job could not start on one node, and could on another one."""
    broken = ran(picture, id, on, uid).change_job(id, **{**HELD, "restarts": 1, "submitted": picture.now}).then(1.1)
    return goes_on(broken.then(1.1), id, elsewhere, 1) if elsewhere else broken


def nudge_of(picture: Picture) -> NudgeJob:
    (nudge,) = [a for a in picture.plan().actions if isinstance(a, NudgeJob)]
    return nudge


def cases(picture: Picture) -> list[Case]:
    return list(picture.memory.cases.values())


def test_the_node_that_slurm_drained_in_that_moment_is_named_and_left_out() -> None:
    picture = held(slurm_drains(a_cluster(), "Prolog error"))
    (attempt,) = picture.memory.jobs[JobId(7)].attempts
    assert attempt.culprits == names("n2")
    assert "n2: Slurm says 'Prolog error'" in attempt.why.evidence
    nudge = nudge_of(picture)
    assert (nudge.exclude, nudge.release) == (names("n2"), True)


def test_nodes_that_were_drained_before_are_not_to_blame() -> None:
    picture = held(slurm_drains(a_cluster(), "Prolog error").after(60.0))
    (attempt,) = picture.memory.jobs[JobId(7)].attempts
    assert (attempt.culprits, attempt.decision.value) == (frozenset(), "requeue")


def test_a_node_that_slurm_left_in_service_is_left_out_by_the_job_that_could_not_start_there() -> None:
    picture = hurt(a_cluster(), 7, elsewhere="")
    assert nudge_of(picture).exclude == names("n2")
    assert cases(picture) == [], "one job may have itself to blame"


def test_a_job_that_cannot_start_anywhere_uses_up_its_resumes_and_harms_no_node() -> None:
    picture = ran(a_cluster(), 7, "n1")
    for restarts, node in enumerate(("n1", "n2", "n3", "n4", "n5", "n6"), start=1):
        held_again = picture.change_job(**{**HELD, "restarts": restarts, "submitted": picture.now})
        picture = goes_on(held_again.then(1.1).wait(1000.0), 7, node, restarts)
    assert picture.memory.jobs[JobId(7)].resumes <= 6
    assert cases(picture) == []


def test_a_node_on_which_a_second_users_job_could_not_start_is_taken_out_whatever_its_checks_say() -> None:
    once = hurt(a_cluster(), 7)
    assert cases(once) == []
    twice = hurt(once, 8, uid=USER + 1).then()
    assert cases(twice) == [], "the second run may fail like the first one"
    (case,) = cases(twice.wait(20.0))
    assert (case.node, case.check) == ("n2", "slurm.launch_failed")
    assert "started elsewhere" in case.why.text


def test_one_user_takes_no_node_away_by_jobs_that_cannot_start_there() -> None:
    """The folder of their output may be there on every other node."""
    picture = a_cluster()
    for id in (7, 8, 9):
        picture = hurt(picture, id)
    picture = picture.wait(20.0)
    assert cases(picture) == []
    assert [key for key in picture.memory.noted if key.startswith("launches:n2")], "it is told, once"


def test_jobs_that_started_nowhere_say_nothing_of_a_node() -> None:
    picture = a_cluster()
    for id in (7, 8, 9):
        picture = hurt(picture, id, elsewhere="")
    assert cases(picture.then()) == []


def test_jobs_of_two_users_whose_launch_fails_everywhere_say_nothing_of_a_node() -> None:
    """As by a folder of their output that is nowhere: Slurm calls each of their runs running for a moment."""
    picture = a_cluster()
    for id, uid in ((7, USER), (8, USER + 1)):
        picture = hurt(picture, id, uid=uid)
        picture = picture.change_job(id, ended=picture.now, **NO_OUTPUT).then(1.1)
    assert picture.memory.jobs[JobId(7)].attempts[0].running is not None
    assert cases(picture.wait(60.0)) == []


def test_a_node_on_which_another_script_has_begun_since_does_start_jobs() -> None:
    """Two users alone could else keep a node from all others, by what only that node lacks."""
    picture = hurt(hurt(a_cluster(), 7), 8, uid=USER + 1)
    runs = picture.job(9, on=("n2",), started=picture.now + 1.0, user_id=USER + 2).after(1.0)
    assert cases(runs.wait(60.0)) == []


def test_a_job_that_runs_on_that_very_node_later_says_nothing_of_it() -> None:
    picture = hurt(hurt(a_cluster(), 7), 8, elsewhere="n2", uid=USER + 1)
    assert cases(picture.wait(60.0)) == []


def test_each_launch_that_fails_costs_a_resume_though_nobody_saw_it_run() -> None:
    picture = held(a_cluster())
    for restarts in range(2, 12):
        assert picture.memory.jobs[JobId(7)].resumes <= 5
        picture = picture.change_job(restarts=restarts, submitted=picture.now).then(1.1).then(1.1)
    mem = picture.memory.jobs[JobId(7)]
    assert mem.resumes == 5
    assert mem.attempts[-1].why.rule == "resume.budget"
    assert [a for a in picture.wait(1000.0).actions() if isinstance(a, NudgeJob)] == []


def test_a_job_whose_launches_fail_waits_longer_each_time() -> None:
    picture = held(a_cluster())
    times, restarts, end = [picture.now], 1, picture.now + 300.0
    while picture.now < end:
        if any(isinstance(a, NudgeJob) for a in picture.plan().actions):
            restarts += 1
            times.append(picture.now)
            picture = picture.then(0.5).change_job(restarts=restarts, submitted=picture.now)
        picture = picture.then(1.0)
    assert len(times) <= 5


def without_output(picture: Picture, on: str) -> Picture:
    """Its output could not be opened on this node: slurmstepd never began its script."""
    return picture.change_job(nodes=names(on), batch_host=n(on), ended=picture.now, **NO_OUTPUT).then(1.1)


def test_a_script_whose_output_could_not_be_opened_goes_on_elsewhere_once() -> None:
    first = without_output(ran(a_cluster(), 7, "n2"), "n2")
    (requeue,) = [a for a in first.after(60.0).plan().actions if isinstance(a, RequeueJob)]
    assert requeue.exclude == names("n2")
    back = first.change_job(**{**HELD, "reason": "BeginTime", "restarts": 1, "exit_status": 0}).then(1.1)
    again = without_output(goes_on(back, 7, "n3", 1), "n3")
    lines = job_lines(JobId(7), again.memory, Draft(again.seen, again.want, again.memory, again.now))
    assert "Its run ended FAILED, and no fault explains that so far: one found within 5 min brings it back." in lines
    assert [a for a in again.wait(600.0).actions() if isinstance(a, RequeueJob)] == []
    assert again.wait(600.0).memory.jobs[JobId(7)].resumes == 1, "also elsewhere: it is the job's own"


def test_a_script_that_a_signal_ended_did_begin() -> None:
    ended = ran(a_cluster(), 7, "n2").change_job(ended=T0, **{**NO_OUTPUT, "exit_status": 15}).then(1.1)
    assert [a for a in ended.actions() if isinstance(a, RequeueJob)] == []


def test_slurms_word_on_the_node_that_comes_a_moment_later_than_the_job_counts() -> None:
    job = {**HELD, "submitted": T0, "node_count": 2, "restarts": 1}
    seen = known(a_cluster().job(7, **job), 7).then(0.5)
    assert seen.memory.jobs[JobId(7)].attempts == ()
    told = slurm_drains(seen.after(-0.5), "Prolog error").after(0.5).then(1.1)
    assert told.memory.jobs[JobId(7)].attempts[0].culprits == names("n2")


# Slurm calls a job over whose script never began.


def over_at_once(picture: Picture, state: JobState = JobState.COMPLETED, ran_s: float = 0.0, **fields: Any) -> Picture:
    """Slurm's record of its submission tells its wish; it was over before anybody looked."""
    times = {"started": picture.now - ran_s, "ended": picture.now, "submitted": picture.now - ran_s}
    return known(picture.job(7, on=("n2",), state=state, **{**times, **fields}), 7)


def tries(picture: Picture) -> list[RequeueJob]:
    return [a for a in picture.plan().actions if isinstance(a, RequeueJob)]


def test_a_job_that_slurm_calls_complete_though_its_script_never_began_runs_elsewhere() -> None:
    (requeue,) = tries(slurm_drains(over_at_once(a_cluster()), "batch job complete failure"))
    assert requeue.exclude == names("n2")
    assert "n2: Slurm says 'batch job complete failure': its script never began" in requeue.why.evidence


def test_also_where_the_node_is_seen_drained_a_moment_later() -> None:
    seen = known(a_cluster().job(7, on=("n2",), started=T0), 7).then(1.0)
    over = seen.change_job(state=JobState.COMPLETED, started=seen.now, ended=seen.now).then(1.0)
    assert over.memory.jobs[JobId(7)].ended is not None
    assert len(tries(slurm_drains(over, "batch job complete failure"))) == 1


def test_a_job_that_ended_well_beside_that_is_complete() -> None:
    drained = "batch job complete failure"
    assert tries(slurm_drains(over_at_once(a_cluster(), ran_s=60.0), drained)) == []
    assert tries(slurm_drains(over_at_once(a_cluster()).then(10.0), drained)) == []
    assert tries(slurm_drains(over_at_once(a_cluster()), "Epilog error")) == []
    began = OptedIn(job=JobId(7), uid=USER, mode=ON, restart=0, at=T0, told_by=names("n2"))
    assert tries(slurm_drains(over_at_once(a_cluster()).see(opted_in=(began,)), drained)) == []
    assert tries(slurm_drains(over_at_once(a_cluster(), JobState.CANCELLED), drained)) == []


def unbegun(picture: Picture, on: str, restart: int = 0) -> Picture:
    asked = picture.ask(AskKind.BATCH, node=on, status=1 << 8, script_unbegun=True, restart=restart, step=f"b{restart}")
    return asked.then(0.1).checked(on).then(0.1)


def test_a_script_that_never_began_is_brought_back_once_without_its_node() -> None:
    text = "n2: something failed there before it (its output, a TaskProlog, another plugin): its script never began"
    first = unbegun(ran(a_cluster(), 7, "n2"), "n2")
    (attempt,) = first.memory.jobs[JobId(7)].attempts
    assert (attempt.culprits, attempt.is_requeue, text in attempt.why.evidence) == (names("n2"), True, True)
    assert JobId(7) in first.memory.nodes[n("n2")].failed_launches
    again = goes_on(first.requeued().see(asks=()).then(1.0), 7, "n3", 1)
    second = unbegun(again, "n3", 1)
    assert second.memory.jobs[JobId(7)].attempts[-1].why.rule == "resume.no_evidence"


GRES = replace(
    a_sign(
        Lean.AMBIGUOUS, "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification"
    ),
    sign="slurm.gres",
)


def test_a_resumed_run_whose_devices_slurm_forgot_is_brought_back_and_no_node_is_blamed() -> None:
    """22.05 breaks its record of a job's devices when several of its nodes are lost at once."""
    first = failed("1", signs=(GRES,), status=1 << 8)
    assert not wishes(first, RequeueJob), "the user may ask for what there is not"
    assert wishes(first, AnswerAsk)
    resumed = opted("1").change_job(restarts=1)
    mem = replace(resumed.memory.jobs[J], restarts=1, resumes=1)
    resumed = replace(resumed, memory=replace(resumed.memory, jobs={J: mem}))
    again = (
        resumed.ask(AskKind.BATCH, mode=mode("1"), restart=1, signs=(GRES,), status=1 << 8).then(0.1).checked(*THREE)
    )
    assert [type(a) for a in again.actions()] == [RequeueJob]
    attempt = memory(again).attempts[-1]
    assert (attempt.culprits, attempt.why.evidence[0]) == (
        frozenset(),
        "n1: Slurm's record of the job's devices was broken when it began anew",
    )
