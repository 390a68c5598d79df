"""Every sentence about a job that `explain`, an event or an action's reason has: one case in which it is true and is
said, and one near it in which it would be false and is not.

A sentence in the code without such a pair fails the last test: add a row.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from steward.model.ask import AskKind
from steward.model.case import CaseStep
from steward.model.fit import MISSING, UNKNOWN
from steward.model.health import Incarnation, Severity
from steward.model.ids import BootId, InstanceId, JobId
from steward.model.job import JobState
from steward.model.job_report import GRES_LOST, Lean, LogSign
from steward.model.job_sight import Doing, LogState, LogWord
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.model.resume import Lent, Raised, Saved
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumeDefault, ResumePolicy
from steward.model.setting_types import RepairMode
from steward.policy.job.decide import decide
from steward.policy.job.failure import Failure, FailureSource
from steward.policy.job.hang import OTHERS_S
from steward.policy.job.keep import GOES_ON_S
from steward.policy.job.options import resume_facts
from steward.views.explain import explain_job, job_warning
from steward.views.explain_group import run_lines
from tests.builders import kept as keep
from tests.builders.capacity import NODE
from tests.builders.failures import a_failure, a_sign, against, an_exit
from tests.builders.picture import T0, Picture, a_cluster, n, names
from tests.builders.requeued import by_slurm, later
from tests.builders.sentences import ROOT, Case, Row, lacking
from tests.builders.slurm_drains import slurm_drains
from tests.fakes.elastic_world import QUICK, ElasticWorld
from tests.unit.policy.groups import test_hot_spares as hot
from tests.unit.policy.groups import test_slots_leaving as leaves
from tests.unit.policy.job import test_broken_launch as launch
from tests.unit.policy.job import test_fits as fits
from tests.unit.policy.job import test_give_back as give_back
from tests.unit.policy.job import test_hang as hang
from tests.unit.policy.job import test_late_evidence as late
from tests.unit.policy.job import test_late_requeue as late_requeue
from tests.unit.policy.job import test_let_go as let_go
from tests.unit.policy.job import test_own_turn as own_turn
from tests.unit.policy.job import test_parts as parts
from tests.unit.policy.job import test_requeued as requeued
from tests.unit.policy.job import test_siblings as siblings
from tests.unit.policy.job.test_no_script import lost_ranks
from tests.unit.policy.job.test_unbegun import put_back_twice
from tests.unit.policy.job.test_unbegun import waiting as never_ran

J = JobId(7)


def said(what: Any) -> str:
    """All that is said of job 7, before and after what is decided now; of a ruling or a run what is said of that."""
    if isinstance(what, str):
        return what
    if isinstance(what, Failure):
        return str(decide(what).why)
    if isinstance(what, ElasticWorld):
        return "\n".join([*run_lines(what.run, QUICK, what.now), *(event.text for event in what.events)])
    if not isinstance(what, Picture):
        return "\n".join(explain_job(J, what.seen, what.want, what.memory, T0))
    plan = what.plan()
    lines = [line for memory in (what.memory, plan.memory) for line in explained(what, memory)]
    return "\n".join([*lines, *(str(event.text) for event in plan.events), *(str(a.why) for a in plan.actions)])


def explained(picture: Picture, memory: Any) -> Iterator[str]:
    for private in (False, True):
        yield from explain_job(J, picture.seen, picture.want, memory, picture.now, private=private)


def a_run(mode: str = "1", **job: Any) -> Picture:
    return a_cluster().job(**job).opted_in(mode=ResumeMode.parse(mode)).then()


def remembered(picture: Picture, **fields: Any) -> Picture:
    mem = replace(picture.memory.jobs[J], **fields)
    return replace(picture, memory=replace(picture.memory, jobs={**picture.memory.jobs, J: mem}))


def asked(picture: Picture | None = None, kind: AskKind = AskKind.STEP, **ask: Any) -> Picture:
    """Its nodes were checked, and it is decided now."""
    return (picture or a_run()).ask(kind, **ask).then(0.1).checked("n1", "n2", "n3")


def stopped(mode: str = "1", **ask: Any) -> Picture:
    """The script failed without evidence, and was told so."""
    return asked(a_run(mode), AskKind.BATCH, **ask).then(0.5).then(20).checked("n1", "n2", "n3").then(0.5)


def ended(**job: Any) -> Picture:
    picture = a_cluster().job().opted_in().then(100)
    return picture.change_job(**{"state": JobState.NODE_FAIL, "ended": picture.now - 5, **job})


def unseen(restarts: int) -> Picture:
    return a_cluster().job().opted_in().then(100).change_job(restarts=restarts)


def without_answer(picture: Picture) -> Picture:
    """Its nodes are silent, and its patience is over."""
    return picture.agent_lost("n2").ask().then(0.1).then(200).agent("n2", late=True)


def answered(picture: Picture, fit: Any) -> Picture:
    return fits.answered(picture, fits.says(fit))


def the_job_waits() -> Picture:
    return keep.waiting().after(5)


def in_queue(**job: Any) -> Picture:
    return by_slurm().change_job(**job)


def task_ended(picture: Picture, status: int, ago_s: float) -> Picture:
    return picture.agent("n1", exits=(replace(an_exit(status), node=n("n1"), at=picture.now - ago_s),))


def a_world(**fields: Any) -> ElasticWorld:
    world = ElasticWorld(**fields)
    world.go(40)
    return world


def run_of(world: ElasticWorld, **fields: Any) -> str:
    return "\n".join(run_lines(replace(world.run, **fields), QUICK, world.now))


TERM, KILLED = 15, 9
_NODE = against()
_OWN: dict[str, Any] = {"own_wish": True, "may_retry": True}
_UNPAID: dict[str, Any] = {"evidence": (_NODE,), "resumes": 5}


def told_before_limit(mode: str) -> Picture:
    return limited(mode).then(5).ask(AskKind.BATCH, status=10)


def told_before_leave(signalled_s: float) -> Picture:
    """Its script ends with the signal that its leaving node got, or before that."""
    picture = leaves.leaving(checkpoint_signal="USR1").job(7, on=(NODE,)).opted_in(7)
    on_it = picture.node(NODE, base=NodeBase.ALLOCATED)
    on_it = leaves.drained(on_it.then(signalled_s)).node(NODE, base=NodeBase.ALLOCATED) if signalled_s else on_it
    return on_it.ask(AskKind.BATCH, node=NODE, status=10)


RULINGS: list[Row] = [
    ("it ended with an exit code that means: do not try again", lambda: a_failure(status=93 << 8), a_failure),
    (
        "it was cancelled or is complete",
        lambda: a_failure(state=JobState.CANCELLED),
        lambda: a_failure(state=JobState.FAILED),
    ),
    (
        "Slurm cancelled it to make room: it waits for another turn",
        lambda: a_failure(rules=ResumePolicy(preempted=True), state=JobState.PREEMPTED),
        lambda: a_failure(state=JobState.PREEMPTED),
    ),
    ("it was evicted for another job", lambda: a_failure(was_evicted="for job 9"), a_failure),
    (
        "it ended after Steward had told it to save its state: it goes on",
        lambda: a_failure(told_to_save="Steward told it to save its state before n1 goes"),
        a_failure,
    ),
    (
        "Steward told it to save its state before its time limit",
        lambda: told_before_limit("1,timeout=1"),
        lambda: told_before_limit("1"),
    ),
    (
        "Steward told it to save its state before workers-1 goes",
        lambda: told_before_leave(5),
        lambda: told_before_leave(0),
    ),
    ("its deadline has passed", lambda: a_failure(state=JobState.DEADLINE), lambda: a_failure(state=JobState.TIMEOUT)),
    (
        "it used more memory than it had asked for",
        lambda: a_failure(state=JobState.OUT_OF_MEMORY),
        lambda: a_failure(status=KILLED),
    ),
    (
        "its time limit is over (timeout=1 lets a job go on)",
        lambda: a_failure(state=JobState.TIMEOUT),
        lambda: a_failure("1,timeout=1", state=JobState.TIMEOUT),
    ),
    (
        "it goes on after its time limit, as it asked for",
        lambda: a_failure("1,timeout=1", state=JobState.TIMEOUT),
        lambda: a_failure(state=JobState.TIMEOUT),
    ),
    (
        "Slurm cancelled it to make room (resume.preempted brings such jobs back)",
        lambda: a_failure(state=JobState.PREEMPTED),
        lambda: a_failure(state=JobState.CANCELLED),
    ),
    (
        "no hardware fault found on its nodes; treated as the job's own failure",
        a_failure,
        lambda: a_failure(evidence=(_NODE,)),
    ),
    (
        "a step failed without a fault of its nodes: its script decides what follows",
        lambda: a_failure("any:3", kind=FailureSource.STEP),
        lambda: a_failure("any:3", kind=FailureSource.STEP, **_OWN),
    ),
    (
        "it was ended by a signal such as scancel sends",
        lambda: a_failure("any:3", status=TERM),
        lambda: a_failure("any:3", status=143 << 8),
    ),
    (
        "its log shows an error of its own, which another try would meet again",
        lambda: a_failure("any:3", signs=(a_sign(Lean.USER),)),
        lambda: a_failure("any:3", signs=(a_sign(Lean.USER, strong=False),)),
    ),
    (
        "it failed too soon after its start to be resumed without evidence",
        lambda: a_failure("any:3", age_s=10.0),
        lambda: a_failure("any:3", age_s=10.0, evidence=(_NODE,)),
    ),
    (
        "it has had all its resumes without evidence",
        lambda: a_failure("any:3", unproven=3, resumes=3),
        lambda: a_failure("any:3", unproven=2, resumes=2),
    ),
    (
        "it has had all its resumes",
        lambda: a_failure(**_UNPAID),
        lambda: a_failure(is_counted=True, **_UNPAID),
    ),
    (
        "its last resumes brought no new checkpoint",
        lambda: a_failure(evidence=(_NODE,), stalls=2),
        lambda: a_failure(evidence=(_NODE,), stalls=1),
    ),
    (
        "the step runs again inside the allocation",
        lambda: a_failure(kind=FailureSource.STEP, evidence=(_NODE,), may_retry=True),
        lambda: a_failure(kind=FailureSource.STEP, evidence=(_NODE,)),
    ),
    (
        "only a batch job can be requeued",
        lambda: a_failure(evidence=(_NODE,), is_batch=False),
        lambda: a_failure(evidence=(_NODE,)),
    ),
    (
        "it was submitted with --no-requeue (override with requeue=1)",
        lambda: a_failure(evidence=(_NODE,), stays_in_place=True),
        lambda: a_failure(evidence=(_NODE,)),
    ),
    (
        "a node failed, and too few others are free: the job starts again when enough are free",
        lambda: a_failure(evidence=(_NODE,), short=True),
        lambda: a_failure(evidence=(replace(_NODE, blames=False),), short=True),
    ),
    (
        "its script is gone with its batch host, and Slurm goes on without it",
        lambda: a_failure(kind=FailureSource.NO_SCRIPT, evidence=(_NODE,)),
        lambda: a_failure(evidence=(_NODE,)),
    ),
    (
        "Slurm runs it without its script",
        lambda: a_failure(kind=FailureSource.NO_SCRIPT, evidence=(_NODE,)),
        lambda: a_failure(state=JobState.NODE_FAIL),
    ),
    (
        "Slurm requeued it after a node's failure",
        lambda: a_failure(kind=FailureSource.REQUEUED, evidence=(_NODE,)),
        lambda: a_failure(kind=FailureSource.ENDED, evidence=(_NODE,)),
    ),
    (
        "a node failed about when the job ended: it starts again",
        lambda: a_failure(kind=FailureSource.ENDED, evidence=(_NODE,)),
        lambda: a_failure(kind=FailureSource.ENDED, evidence=(_NODE,), was_evicted="for job 9"),
    ),
    (
        "a node failed; the job starts again elsewhere",
        lambda: a_failure(evidence=(_NODE,)),
        lambda: a_failure("any:3"),
    ),
    (
        "it asked to be resumed also without evidence",
        lambda: a_failure("any:3"),
        lambda: a_failure("any:3", evidence=(_NODE,)),
    ),
    (
        "what it read through a pipe is gone: it cannot run again in place",
        lambda: a_failure(kind=FailureSource.STEP, evidence=(_NODE,), input_gone=True),
        lambda: a_failure(kind=FailureSource.STEP, evidence=(_NODE,), may_retry=True),
    ),
    ("ended by signal 15", lambda: a_failure(status=TERM), lambda: a_failure(status=143 << 8)),
    (
        "0 of 5 resumes used, 0 of 3 without evidence",
        lambda: a_failure("any:3", status=0),
        lambda: a_failure("1", status=0),
    ),
    (
        "1 of 5 resumes used, the last 1 without a new checkpoint",
        lambda: a_failure(resumes=1, stalls=1),
        lambda: a_failure(resumes=1),
    ),
]

OPTING: list[Row] = [
    (
        "A replica job is not resumed by itself: when it is over, its run goes on and may ask for another.",
        lambda: of_replica(a_world()),
        lambda: a_cluster().job(),
    ),
    (
        "Resuming is off on this cluster (resume.enabled = false): no job is brought back, whatever it asks for.",
        lambda: a_cluster().resume(enabled=False).job(),
        lambda: a_cluster().job(),
    ),
    (
        "resuming is off on this cluster (resume.enabled = false): this job is not brought back",
        lambda: job_warning(a_cluster().resume(enabled=False).want),
        lambda: job_warning(a_cluster().want),
    ),
    (
        'Steward only reports on this cluster (repair.mode = "report")',
        lambda: job_warning(a_cluster(mode=RepairMode.REPORT).want),
        lambda: job_warning(a_cluster(mode=RepairMode.ASK).want),
    ),
    (
        "The job has not run yet: whether it asks to be resumed (--auto-resume=1) is looked at when it starts.",
        lambda: a_cluster().job(state=JobState.PENDING),
        lambda: a_cluster().job(state=JobState.PENDING, restarts=1),
    ),
    (
        "Whether the job asked to be resumed (--auto-resume=1) is not known: no agent reported it, and it is hidden.",
        lambda: a_cluster().job().see(unread={J: "it is hidden"}),
        lambda: a_cluster().job(),
    ),
    (
        "The job did not ask to be resumed (by a valid --auto-resume=), so no fault brings it back.",
        lambda: a_cluster().job(),
        a_run,
    ),
    (
        "Nothing shows that it asked to be resumed (by a valid --auto-resume=), so no fault brings it back.",
        lambda: a_cluster().job(state=JobState.FAILED, ended=T0),
        lambda: a_cluster().job(),
    ),
    (
        "The job ended while no head was there: whether it had asked to be resumed (--auto-resume=1) is not known, and "
        "nothing brings it back.",
        lambda: a_cluster().see(agents_since=T0 - 5).job(state=JobState.CANCELLED, ended=T0 - 60),
        lambda: a_cluster().see(agents_since=T0 - 5).job(state=JobState.CANCELLED, ended=T0 - 1),
    ),
    (
        "Slurm put it back into the queue, as it does when a node of it is taken out or ended.",
        lambda: a_cluster().job(restarts=1),
        lambda: a_cluster().job(),
    ),
    (
        "Slurm cannot be read now: this is the last good picture, and nothing is done on it.",
        lambda: a_run().see(slurm=Freshness.OLD),
        a_run,
    ),
    (
        "Its run ended FAILED, and no fault explains that so far: one found within 5 min brings it back.",
        lambda: ended(state=JobState.FAILED).then(1.0),
        lambda: ended(state=JobState.FAILED).then(1.0).see(slurm=Freshness.OLD),
    ),
    (
        "Its run ended FAILED, and no fault explains that so far: none can be looked for now.",
        lambda: ended(state=JobState.FAILED).then(1.0).see(slurm=Freshness.OLD),
        lambda: ended(state=JobState.FAILED).then(1.0),
    ),
    ("Job 7: Slurm does not know it any more.", a_cluster, a_run),
    ("job 7: Slurm does not know it any more", lambda: a_run().see(jobs={}), a_run),
    ("The job asked to be resumed (--auto-resume=1)", a_run, lambda: by_default()),
    ("The site's default resumes it (--auto-resume=1)", lambda: by_default(), a_run),
    ("; 0 of 5 resumes are used", a_run, lambda: in_queue()),
    (", 0 of 3 without evidence", lambda: a_run("any:3"), a_run),
    (
        "Steps run again in place, the job is not requeued: --no-requeue or requeue=0 was given (requeue=1 was not).",
        lambda: a_run("1,requeue=0"),
        lambda: a_run("1,requeue=1"),
    ),
    (
        "job 7 is resumed if a node fails (--auto-resume=1)",
        lambda: a_cluster().job().opted_in(),
        lambda: a_cluster().job(is_batch=False).opted_in(),
    ),
    (
        "steps of job 7 run again inside its allocation if a node fails",
        lambda: a_cluster().job(is_batch=False).opted_in(),
        lambda: a_cluster().job().opted_in(),
    ),
    (
        "the site's default for it is 1",
        lambda: a_cluster().resume(default=(ResumeDefault(partition="main", mode="1"),)).job(),
        lambda: a_cluster().resume(default=(ResumeDefault(partition="other", mode="1"),)).job(),
    ),
    (
        "reports another user's job as its own, such as 7: the report is ignored",
        lambda: a_cluster().job().opted_in(uid=1001, by=("n5",)),
        lambda: a_cluster().job().opted_in(by=("n1",)),
    ),
    (
        "n5 reports that job 7 opted in, but that job does not run there: the report is ignored",
        lambda: a_cluster().job().opted_in(by=("n5",)),
        lambda: a_cluster().job().opted_in(by=("n1",)),
    ),
]


def by_default() -> Picture:
    return a_cluster().resume(default=(ResumeDefault(partition="main", mode="1"),)).job().then()


def of_replica(world: ElasticWorld) -> str:
    replica = world.replicas()[0].id
    seen = world.picture
    return "\n".join(explain_job(replica, seen.seen, seen.want, seen.memory, world.now))


ASKS: list[Row] = [
    ("uid 1001 asked for a job of uid 1000", lambda: a_run().ask(uid=1001), lambda: a_run().ask()),
    (
        "Slurm could not be read in time",
        lambda: a_run().ask().see(slurm=Freshness.OLD).then(0.1).after(60.0),
        lambda: a_run().ask().then(0.1).after(60.0),
    ),
    (
        "n5 asked for a job that it does not have",
        lambda: a_run().ask(node="n5"),
        lambda: a_run().ask(node="n2"),
    ),
    ("auto-resume is off for it", lambda: a_run().ask(mode=ResumeMode.parse("0")), lambda: a_run().ask()),
    ("the job was requeued", lambda: a_run().change_job(restarts=1).ask(), lambda: a_run().ask()),
    (
        "Slurm does not know the job",
        lambda: a_cluster().ask().then(1.1),
        lambda: a_cluster().job().ask(mode=ResumeMode.parse("0")).then(1.1),
    ),
    (
        "the script of job 7 asks for its parts",
        lambda: parts.running().ask(id=8, node="n3"),
        lambda: parts.running().ask(id=7),
    ),
    (
        "the job did not ask to be resumed",
        lambda: a_cluster().job().ask(mode=ResumeMode.parse("0")),
        lambda: a_run().ask(mode=ResumeMode.parse("0")),
    ),
    (
        "Slurm is ending it",
        lambda: a_run().ask().change_job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"})),
        lambda: a_run().ask().change_job(state=JobState.FAILED),
    ),
    (
        "the job is FAILED",
        lambda: a_run().ask().change_job(state=JobState.FAILED),
        lambda: a_run().ask(),
    ),
    (
        "no decision was possible in time",
        lambda: unanswered(),
        lambda: stopped(),
    ),
    ("job 7 failed; is one of its nodes the cause?", lambda: a_run().ask(), a_run),
    (
        "Step 0 failed, as n1 says, and waits for a decision.",
        lambda: a_run().ask(),
        lambda: a_run().ask(uid=1001),
    ),
    (
        "The script failed, as n1 says, and waits for a decision.",
        lambda: a_run().ask(AskKind.BATCH),
        lambda: stopped(),
    ),
]


def unanswered() -> Picture:
    """A node that may be frozen keeps the answer open until the deadline."""
    picture = a_run().agent("n2", late=True).ask().then(0.1)
    deadline = picture.want.resume.ask_deadline_s
    return picture.resume(detect_s=1000.0).after(deadline)


EVIDENCE: list[Row] = [
    (
        "n1: its host was being shut down, as its agent said",
        lambda: late.stopping(late.failed(late.running()), "n1"),
        lambda: late.stopping(late.failed(late.running()), "n3"),
    ),
    (
        "n1: its provider takes its machine away",
        lambda: late.reclaimed(late.failed(late.running()), "n1").then(1),
        lambda: late.reclaimed(late.failed(late.running()), "n3").then(1),
    ),
    (
        "n2: was lost for a while: its agent was gone, and a second source confirmed it",
        lambda: after_an_outage(60.0),
        lambda: after_an_outage(0.0),
    ),
    (
        "n2: Slurm has it DOWN",
        lambda: asked().node("n2", base=NodeBase.DOWN),
        lambda: asked().node("n5", base=NodeBase.DOWN),
    ),
    (
        "n2: Slurm took it out of the running job: Slurm has it DOWN",
        lambda: taken_out(base=NodeBase.DOWN),
        lambda: taken_out(),
    ),
    (
        "n2: Slurm took it out of the running job: Slurm does not know it any more",
        lambda: without_node(taken_out()),
        lambda: taken_out(base=NodeBase.DOWN),
    ),
    (
        "n2: Slurm took it out of the running job: a step ran there, and what was wrong was over before it was seen",
        lambda: asked(a_run().change_job(nodes=names("n1", "n3")).then(4), nodes="n[1-2]", age=30.0),
        lambda: asked(a_run().change_job(nodes=names("n1", "n3")).then(4), nodes="n[1,3]", age=30.0),
    ),
    (
        "n2: the run before lost it; Slurm may have sent that run's end to the new machine and ended this run",
        lambda: runs_again_on_the_lost_node(10.0),
        lambda: runs_again_on_the_lost_node(1000.0),
    ),
    (
        "Slurm had lost the script there before it began",
        lambda: asked(kind=AskKind.BATCH, script_gone=True),
        lambda: asked(kind=AskKind.BATCH),
    ),
    (
        "Slurm's record of the job's devices was broken when it began anew",
        lambda: lost_gres(1),
        lambda: lost_gres(0),
    ),
    (
        "n1: jobs of 2 other users failed on it, too (8, 9)",
        lambda: with_failures(asked(kind=AskKind.BATCH), 1001, 1002),
        lambda: with_failures(asked(kind=AskKind.BATCH), 1001, 1001),
    ),
    (
        "n2: it has booted since the run began there",
        lambda: checked(booted_under_it("n2", "n1").ask(AskKind.STEP, nodes="n[1-3]")),
        lambda: checked(booted_under_it("n1", "n1").ask(AskKind.STEP, nodes="n[1-3]")),
    ),
    (
        "n2: its script ran there, and Slurm took it out of the job",
        lambda: a_run(batch_host=n("n2")).change_job(nodes=names("n1", "n3")),
        lambda: a_run(batch_host=n("n1")).change_job(nodes=names("n1", "n3")),
    ),
    (
        "job 7 runs without its script since n2 died; it has had all its resumes: cancel it",
        lambda: a_run("1,max=0", batch_host=n("n2")).change_job(nodes=names("n1", "n3")),
        lambda: a_run(batch_host=n("n2")).change_job(nodes=names("n1", "n3")),
    ),
    (
        "job 7 runs without some of its ranks since n2 died; it has had all its resumes: cancel it",
        lambda: lost_ranks().resume(max_resumes=0),
        lambda: lost_ranks(),
    ),
    (
        "n2: Slurm could not start the job there",
        lambda: launch.hurt(a_cluster(), 7, elsewhere=""),
        lambda: launch.ran(a_cluster(), 7, "n2").requeued().then(1.1),
    ),
    (
        "n2: Slurm says 'Prolog error'",
        lambda: launch.held(slurm_drains(a_cluster(), "Prolog error")),
        lambda: launch.held(slurm_drains(a_cluster(), "Prolog error").after(60.0)),
    ),
    (
        "n2: its output could not be opened there, so its script never began",
        lambda: launch.without_output(launch.ran(a_cluster(), 7, "n2"), "n2"),
        lambda: launch.ran(a_cluster(), 7, "n2").change_job(**{**launch.NO_OUTPUT, "exit_status": TERM}),
    ),
    (
        "n2: Slurm says 'batch job complete failure': its script never began",
        lambda: slurm_drains(launch.over_at_once(a_cluster()), "batch job complete failure"),
        lambda: slurm_drains(launch.over_at_once(a_cluster(), ran_s=60.0), "batch job complete failure"),
    ),
    (
        "n2: something failed there before it (its output, a TaskProlog, another plugin): its script never began",
        lambda: launch.unbegun(launch.ran(a_cluster(), 7, "n2"), "n2"),
        lambda: launch.ran(a_cluster(), 7, "n2").ask(AskKind.BATCH, node="n2", status=1 << 8).then(0.1),
    ),
    (
        "n1: its provider takes its machine away",
        lambda: late.reclaimed(late.failed(late.running()), "n1"),
        lambda: late.reclaimed(late.failed(late.running()), "n3"),
    ),
]

_LOST_GRES = LogSign(sign=GRES_LOST, lean=Lean.INFRA, strong=True, line="error", order=0)


def checked(picture: Picture) -> Picture:
    return picture.then(0.1).checked("n1", "n2", "n3").then(0.1)


def booted_under_it(name: str, host: str = "n2") -> Picture:
    """A node of the run was dead and is back, which no head saw."""
    picture = a_run(batch_host=n(host)).opted_in(script=(host, "boot-1")).then(0.1)
    booted = Incarnation(instance=InstanceId(f"i-{name}"), boot=BootId("boot-2"))
    return picture.node(name, slurmd_started=picture.now).agent(name, incarnation=booted)


def lost_gres(resumes: int) -> Picture:
    failed = asked(remembered(a_run(), resumes=resumes), AskKind.BATCH, signs=(_LOST_GRES,))
    return failed.then(20).checked("n1", "n2", "n3").then(20).checked("n1", "n2", "n3")


def taken_out(**n2: Any) -> Picture:
    """n2 left the running job, as `n2` says because of a fault or not; the script fails."""
    left = a_run().change_job(nodes=names("n1", "n3")).node("n2", **n2).then(4)
    return asked(left, AskKind.BATCH)


def without_node(picture: Picture) -> Picture:
    left = a_run().change_job(nodes=names("n1", "n3"))
    gone = left.see(nodes={name: node for name, node in left.seen.nodes.items() if name != "n2"}).then(4)
    return asked(gone, AskKind.BATCH)


def after_an_outage(before_s: float) -> Picture:
    """Agents of many nodes were gone for a while, `before_s` after the run began or before it did."""
    away = ("n2", "n5", "n6", "n7")
    picture = a_cluster(8).job().opted_in().then(60).lost(*away).then(3).heard(*away).then(30)
    if not before_s:
        picture = picture.change_job(started=picture.now).then(10)
    return picture.ask().then(0.1).checked("n1", "n2", "n3")


def runs_again_on_the_lost_node(replaced_s: float) -> Picture:
    """It lost n2 and ran on; its next run has n2 again, another machine since `replaced_s` ago."""
    lost = a_run().lost("n2").then().marked("n2").then(0.1).change_job(nodes=names("n1", "n3")).then(5)
    cases = {id: replace(case, replaced=lost.now + 10 - replaced_s) for id, case in lost.memory.cases.items()}
    back = replace(lost, memory=replace(lost.memory, cases=cases)).requeued().then(1.1)
    back = back.node("n2", base=NodeBase.IDLE, flags=frozenset(), reason=None).heard("n2")
    again = back.change_job(state=JobState.RUNNING, nodes=names("n1", "n2", "n3"), started=back.now, reason="")
    return asked(again.then(9), AskKind.BATCH, restart=1)


def with_failures(picture: Picture, *uids: int) -> Picture:
    for id, uid in enumerate(uids, 8):
        picture = picture.job(id, on=("n1",), user_id=uid, state=JobState.FAILED, ended=picture.now - 5)
    return picture


ENDS: list[Row] = [
    ("The job is over: FAILED.", lambda: late.failed(late.running()), lambda: late.running()),
    (
        "job 7 was over (FAILED): a node failed about when the job ended: it starts again",
        lambda: late.failed(late.running()).lost("n1"),
        lambda: late.failed(late.running()).lost("n3"),
    ),
    (
        "; it should have been resumed and could not be requeued: refused: no",
        lambda: late_requeue.failing(ended(), "refused: no").after(6),
        lambda: late_requeue.failing(ended(), "timed out").after(6),
    ),
    (
        "; it should have been resumed, and Slurm forgot it (MinJobAge) before its requeue",
        lambda: late_requeue.failing(ended(), "timed out").then(6).then(6).see(jobs={}),
        lambda: in_queue().then(5).see(jobs={}),
    ),
    ("retried inside its allocation (step 0 failed)", lambda: retried(), lambda: stopped()),
    ("not resumed (the script failed)", lambda: stopped(), lambda: retried()),
    (
        "requeued, to wait until enough nodes are free",
        lambda: a_cluster(3).job().opted_in().then().lost("n2").then().marked("n2").requeued().then(5),
        lambda: in_queue().then(5),
    ),
    (
        "left to Slurm, which had put it back into the queue",
        lambda: out_of_resumes(),
        lambda: in_queue().then(5),
    ),
    (
        "job 7 was requeued by Slurm and is left to it: it has had all its resumes",
        lambda: a_run("1,max=0").lost("n2").then().marked("n2").requeued(),
        lambda: a_run().lost("n2").then().marked("n2").requeued(),
    ),
    (
        "what it printed is shown to its user and to admins: run `steward explain` as one of them",
        lambda: stopped(signs=(a_sign(Lean.USER, "ValueError"),)),
        lambda: stopped(),
    ),
    ("it printed: ValueError", lambda: stopped(signs=(a_sign(Lean.USER, "ValueError"),)), lambda: stopped()),
    (
        "1 of 5, after n2 failed; no checkpoint is known",
        lambda: told_to_the_job(in_queue()),
        lambda: told_to_the_job(saved_at(50)),
    ),
    ("  it ran again ", lambda: runs_again(), lambda: in_queue().then(5)),
    ("job 7 runs again after ", lambda: now_running(in_queue().then(0.5)), lambda: in_queue().then(0.5)),
    (
        "job 7 is back in the queue (restart 1)",
        lambda: a_run().requeued(),
        lambda: a_run().change_job(state=JobState.FAILED),
    ),
    (
        "job 7 was started again 3 times while the head did not look: each counts as a resume",
        lambda: a_run().change_job(restarts=4),
        lambda: a_run().change_job(restarts=1),
    ),
    (
        "job 7 is shown as running as if it had not been put back: slurmctld has lost its newest state",
        lambda: requeued.shown_again(),
        lambda: now_running(in_queue().then(0.5)),
    ),
    (
        "it asked to be resumed, which needs Requeue=1",
        lambda: a_cluster().job(requeue=False).opted_in(),
        lambda: a_cluster().job(requeue=False).opted_in(mode=ResumeMode.parse("1,requeue=0")),
    ),
    (
        "its time limit is over in 120 s or less: it may save its state, and goes on after",
        lambda: limited("1,timeout=1"),
        lambda: limited("1"),
    ),
    (
        "job 7: its parts begin together [resume.parts] (left over of the last run: 7+1): all go back into the queue",
        lambda: parts.left_behind(state=JobState.FAILED),
        lambda: parts.left_behind(state=JobState.CANCELLED),
    ),
    (
        "job 7: the fault took 60 s of its time limit, which are given back",
        lambda: give_back.retried(),
        lambda: give_back.retried(at=T0).after(-60.0),
    ),
    ("a fault took time that the job had asked for", lambda: give_back.retried(), a_run),
]


def told_to_the_job(picture: Picture) -> str:
    facts = resume_facts(J, picture.memory, picture.want.resume)
    return facts.resumed if facts is not None else ""


def outage() -> Picture:
    """n2 was away with others while the job ran, and is back."""
    away = ("n2", "n5", "n6", "n7")
    return a_cluster(8).job().opted_in().then(60).lost(*away).then(3).heard(*away).then(30)


def retried() -> Picture:
    return asked(outage()).then(0.1)


def out_of_resumes() -> Picture:
    return a_run("1,max=0").lost("n2").then().marked("n2").requeued().then(5)


def now_running(picture: Picture, **job: Any) -> Picture:
    fields = {"state": JobState.RUNNING, "nodes": names("n1", "n3", "n4"), "started": picture.now, "reason": ""}
    return picture.change_job(**{**fields, **job})


def runs_again() -> Picture:
    return now_running(in_queue().then(0.5)).then(1)


def limited(mode: str) -> Picture:
    picture = a_run(mode).resume(checkpoint_signal="USR1", checkpoint_before_s=120.0)
    return picture.change_job(time_limit_s=700.0, started=picture.now - 600.0)


QUEUE: list[Row] = [
    ("The job is kept off n2 (ExcNodeList) until it is repaired.", lambda: kept_off(), lambda: kept_off("n3")),
    ("The job has waited to run again for ", lambda: in_queue(), lambda: never_ran()),
    (
        "it is held (JobHeldUser): it stays where it is until it is released",
        lambda: in_queue(reason="JobHeldUser"),
        lambda: in_queue(reason="JobHoldMaxRequeue"),
    ),
    (
        "was suspended when its last run ended, for which Slurm holds it (JobHeldAdmin)",
        lambda: ended_while_suspended(),
        lambda: in_queue(reason="JobHeldAdmin"),
    ),
    (
        "it was given a later start time (scontrol update starttime): it is left alone until then",
        lambda: later(in_queue(), 86_400.0),
        lambda: later(in_queue(), 120.0),
    ),
    (
        "was put back by Slurm without a run twice, for no fault that is known here (slurmctld's log says why): it is "
        "left to Slurm's own delay",
        lambda: unbegun(),
        lambda: never_ran().requeued().then(1.1),
    ),
    ("; it is left to Slurm.", lambda: out_of_resumes(), lambda: in_queue()),
    ("after so many resumes it is hurried on only in ", lambda: second_resume(), lambda: in_queue()),
    ("not nudged yet", lambda: a_run().requeued(), lambda: in_queue().then(5)),
    (
        "it is not hurried on while Slurm cannot be read.",
        lambda: in_queue().then(0.5).see(slurm=Freshness.OLD),
        lambda: in_queue().then(0.5),
    ),
    ("nudged once", lambda: in_queue().then(0.5), lambda: a_run().requeued()),
    ("it was requeued", lambda: a_run().requeued().then(1.1), lambda: in_queue()),
    ("it was resumed 2 times: it waits before the next run", lambda: second_resume(), lambda: in_queue()),
    (
        "a fault took its place: it goes before 1 waiting jobs, for 60 s at most",
        lambda: with_rival(),
        lambda: with_rival(priority=1),
    ),
    (
        "it did not start in time: it waits for its turn like others",
        lambda: raised(61.0),
        lambda: raised(30.0),
    ),
    (
        "it asks for more than its last run had: it waits for its turn like others",
        lambda: own_turn.lost_for().then(0.2).change_job(nice=-201, time_limit_s=7200.0),
        lambda: own_turn.lost_for().then(0.2).change_job(nice=-201),
    ),
    (
        "it went first in the queue, and was made larger meanwhile: it waits for its turn",
        lambda: own_turn.started_first(4),
        lambda: own_turn.started_first(3),
    ),
    ("First in the queue for 61 s (nice 0 -> -5).", lambda: raised(61.0), lambda: in_queue()),
    (
        "its array runs 1 at a time: the other tasks begin after this one, or in 20 s",
        lambda: siblings.an_array().lost("n2"),
        lambda: siblings.an_array(most=0).lost("n2"),
    ),
    (
        "the task that lost its place runs again",
        lambda: siblings_wait(),
        lambda: siblings.requeued(),
    ),
    ("it lost its place to a fault", lambda: siblings.an_array().lost("n2"), lambda: siblings.an_array()),
]


def kept_off(*excluded: str) -> Picture:
    back = a_run().lost("n2").then().marked("n2").requeued().then(5)
    return back.change_job(excluded=names(*(excluded or ("n2",))))


def ended_while_suspended() -> Picture:
    suspended = a_run().change_job(state=JobState.SUSPENDED).then(5)
    return suspended.lost("n2").then().marked("n2").requeued(reason="JobHeldAdmin").then(1.1)


def unbegun() -> Picture:
    return put_back_twice()


def second_resume() -> Picture:
    run = now_running(in_queue().resume(backoff_s=(0.0, 60.0)).then(0.5)).then(5)
    return run.lost("n3").then().marked("n3").requeued()


def with_rival(**job: Any) -> Picture:
    """Another job waits before it, if that has a higher priority."""
    fields = {"state": JobState.PENDING, "nodes": frozenset(), "started": None, "priority": 9, "user_id": 1}
    picture = a_run(priority=5).job(9, on=("n6",), **{**fields, **job})
    return picture.lost("n2").then().marked("n2").requeued(priority=5).then(1.1)


def raised(ago_s: float) -> Picture:
    picture = in_queue(nice=-5, priority=100).then(1)
    return remembered(picture, raised=Raised(restart=0, before=0, nice=-5, at=picture.now - ago_s))


def siblings_wait() -> Picture:
    back = siblings.requeued().change_job(8, eligible=siblings.requeued().now + 10)
    return now_running(back, nodes=names("n1", "n3", "n4"))


KEPT: list[Row] = [
    ("2 sound nodes of its run are kept for it, ", lambda: keep.full().lost("n2"), lambda: keep.full()),
    (
        "(it lost n2): n[1,3], and n2 once it is repaired",
        lambda: keep.full().lost("n2"),
        lambda: keep.rival(with_an_idle_one(keep.full()), node_count=1).repair(mode=RepairMode.ASK).lost("n2"),
    ),
    ("n[1-3]: kept for it, for ", lambda: the_job_waits(), lambda: in_queue()),
    ("n[1-3]: kept for it until ", lambda: freed(), lambda: the_job_waits()),
    ("the job still waits for nodes", lambda: the_job_waits().after(600.0), lambda: freed()),
    (
        "job 7: 3 nodes are no longer kept for it: enough nodes are there",
        lambda: keep.n2_is_back(keep.waiting().then(60)),
        lambda: the_job_waits(),
    ),
    ("it can start now, as Slurm says", lambda: answered(the_job_waits(), fits.NOW), lambda: the_job_waits()),
    ("the job is over", lambda: keep_on(state=JobState.CANCELLED), lambda: the_job_waits()),
    ("the job runs again", lambda: keep_on(state=JobState.RUNNING, nodes=names("n1", "n3", "n4")), the_job_waits),
    ("the job goes on", lambda: keep_goes_on(GOES_ON_S + 1), lambda: keep_goes_on(1.0)),
    ("the job is held (JobHeldUser)", lambda: keep_on(reason="JobHeldUser"), lambda: the_job_waits()),
    ("the job is left to Slurm", lambda: remembered(the_job_waits(), unbegun=(1, 2)), lambda: the_job_waits()),
    (
        "Steward is paused, or only reports",
        lambda: the_job_waits().repair(mode=RepairMode.REPORT),
        lambda: the_job_waits(),
    ),
    (
        "their reservation is gone, or Slurm refused it",
        lambda: the_job_waits().see(reservations={}, reservations_at=the_job_waits().now + 600),
        lambda: the_job_waits(),
    ),
    (
        "no repair under way gives it the nodes that it lacks",
        lambda: no_repair(),
        lambda: the_job_waits(),
    ),
    (
        "s for them (resume.keep_s)",
        lambda: the_job_waits().after(7200.0),
        lambda: the_job_waits(),
    ),
    (
        "job 9 has waited for such nodes for 60 s (resume.keep_others_s)",
        lambda: keep.rival(keep.waiting().resume(keep_others_s=60.0)).after(120),
        lambda: keep.rival(keep.waiting().resume(keep_others_s=60.0), excluded=names("n1", "n2", "n3")).after(120),
    ),
    (
        "job 7: hot spares n4 are released for it",
        lambda: hot.lacks_n2(hot.kept(hot.a_site(), "n4")),
        lambda: hot.lacks_n2(hot.a_site()),
    ),
    (
        "no job waits for the nodes of steward-keep-7",
        lambda: remembered(the_job_waits(), kept=None),
        lambda: the_job_waits(),
    ),
    (
        "job 7: hot spares n4 are released for it",
        fits.with_a_hot_spare,
        lambda: answered(fits.with_a_hot_spare().node("n4", gres="gpu:l4:1").see(fits={}), fits.NEVER),
    ),
    (
        "job 7: its nodes are not kept for it: more than 10% of main (resume.keep_percent)",
        lambda: keep.full().resume(keep_percent=10.0).lost("n2"),
        lambda: keep.full().lost("n2"),
    ),
    (
        "Hot spares released for it 5 s ago: n4.",
        lambda: remembered(in_queue(), lent=Lent(restart=0, nodes=names("n4"), at=in_queue().now - 5)),
        lambda: in_queue(),
    ),
]


def with_an_idle_one(picture: Picture) -> Picture:
    return fits.with_another_idle_node(picture)


def keep_on(**job: Any) -> Picture:
    picture = the_job_waits()
    started = picture.now if job.get("state") is JobState.RUNNING else None
    return picture.change_job(**{"started": started, **job})


def freed() -> Picture:
    return keep_on(reason="JobHeldUser").then(1)


def keep_goes_on(after_s: float) -> Picture:
    return keep.reserved(keep.full().lost("n2").then()).after(after_s)


def no_repair() -> Picture:
    picture = the_job_waits()
    cases = {id: replace(case, step=CaseStep.HELD) for id, case in picture.memory.cases.items()}
    return replace(picture, memory=replace(picture.memory, cases=cases))


def _ruled(word: LogWord) -> Picture:
    return hang.ruled(hang.plain(), word)


WORKING = partial(hang.other, Doing.WORKS, Doing.WORKS)
STILL: list[Row] = [
    ("Last reported step: 100 (", lambda: hang.stepping(hang.a_job(), ago_s=1.0), lambda: hang.a_job()),
    (
        "Earlier attempts had left processes running when this one began: n1: 12 redis",
        lambda: left_behind(restart=0),
        lambda: left_behind(restart=1),
    ),
    (
        "n1 is silent, and Slurm has it MAINTENANCE: nothing is done for the job until Slurm finds it DOWN",
        lambda: a_run().lost("n1").node("n1", flags=frozenset({"MAINTENANCE"})),
        lambda: a_run().node("n1", flags=frozenset({"MAINTENANCE"})),
    ),
    ("Its newest checkpoint: /c of step 50", lambda: saved_at(50), lambda: in_queue()),
    ("Resumes in a row without a new one: ", lambda: saved_at(50), lambda: remembered(a_run(), saved=Saved(path="/c"))),
    ("job 7 stands still: no step since step 100 for more than 300 s", lambda: hang.stuck(), lambda: hang.a_job()),
    ("(its usual longest pause: not known yet)", lambda: slow_pace(None), lambda: slow_pace(2.0)),
    ("it may wait for input, a file or a person", lambda: quiet(4000.0), WORKING),
    *(
        (text, partial(hang.other, doing, Doing.STOPPED if doing is Doing.BUSY else other, for_s=4000.0), WORKING)
        for text, doing, other in (
            (": stopped by a signal", Doing.STOPPED, Doing.SPINS),
            ("; a person may have stopped it", Doing.STOPPED, Doing.SPINS),
            ("blocked in the kernel", Doing.BLOCKED, Doing.SPINS),
            ("; a file system or a device may not answer", Doing.BLOCKED, Doing.SPINS),
            (" ended, and ", Doing.GONE, Doing.SPINS),
            ("; its program may have ended on purpose", Doing.GONE, Doing.SPINS),
            (" using neither CPU nor GPU", Doing.WAITS, Doing.SPINS),
            ("; it may wait for something outside of the job", Doing.WAITS, Doing.SPINS),
            (" waiting in a kernel of its GPU", Doing.SPINS, Doing.SPINS),
            ("; no rank can be named: they may wait for each other, or for the network", Doing.SPINS, Doing.SPINS),
            (" using CPU; ", Doing.BUSY, Doing.STOPPED),
            ("Its ranks do no work for ", Doing.SPINS, Doing.SPINS),
            ("It is left running, as it did not ask for more (hang=1 or hang=SECONDS", Doing.SPINS, Doing.SPINS),
        )
    ),
    ("It counts as a hang in 20 min.", partial(hang.alone, "1", for_s=600.0), partial(hang.alone, "1")),
    ("a job of one rank may be a notebook.", hang.alone, partial(hang.alone, "1")),
    ("or its partition, is not watched for hangs.", partial(hang.alone, "1,hang=0"), partial(hang.alone, "1")),
    *(
        (text, partial(_ruled, word), partial(_ruled, hang.WATCHED if word is not hang.WATCHED else hang.LATE))
        for text, word in (
            ("no line came in its output for which its own rule 'steps' allows 5 min", hang.LATE),
            ("It stands still for ", hang.LATE),
            ("the output of rank 3 of step batch (n1)", replace(hang.LATE, rank=3)),
            ("Its output is watched by its own rules (1 rule)", hang.WATCHED),
            ("its rules for its output cannot be used: no JSON", LogWord(state=LogState.BROKEN, text="no JSON")),
            ("by its rule 'speed' it is slow: in its output 12", LogWord(state=LogState.SLOW, rule="speed", text="12")),
            ("line came in its output that its rule 'oom' calls a fault", LogWord(state=LogState.FAULT, rule="oom")),
        )
    ),
    *(
        (text, lambda: hang.slowed(hang.a_job(), "n2").after(OTHERS_S + 1.0), lambda: hang.slowed(hang.a_job()))
        for text in (
            "the GPU of rank 2 of step 0 (n2, GPU-2) has been slowed down by its hardware for ",
            "; ranks that wait for it go no faster",
            " (1050 MHz, the others on the node 1900)",
        )
    ),
    ("it is still at step 100; ", lambda: hang.stuck().then(1), lambda: quiet(4000.0).then(1)),
    ("its ranks do no work; ", lambda: quiet(4000.0).then(1), lambda: hang.stuck().then(1)),
    (
        "it is left running",
        lambda: hang.answered(hang.stuck("1").then(3.0)).then(),
        lambda: hang.stuck("1").then(3.0).then(),
    ),
    ("its nodes are looked at", lambda: hang.stuck("1").then(1), lambda: hang.answered(hang.stuck("1").then(3)).then()),
    (
        "if it fails of it, it starts again without n2 (hang=1 would not wait for that)",
        lambda: hang.waits_for_n2(),
        lambda: hang.waits_for_n2(n2=Doing.GONE),
    ),
    (
        "n2: the job stood still for 5 min: rank 1 of step 0 (n2, process 4001): using neither CPU nor GPU",
        lambda: hang.failed(hang.waits_for_n2()),
        lambda: hang.failed(hang.waits_for_n2("1,hang=0")),
    ),
    ("job 7 stands still (", lambda: hang.answered(hang.stuck("1").then(3.0)), lambda: hang.stuck("1").then(3.0)),
    ("what its tasks did: bundles/7-0-100 in the head's state_dir", lambda: hang.stuck().then(1), lambda: hang.a_job()),
    ("job 7 goes on", lambda: hang.stepping(hang.stuck().then(1), 101), lambda: hang.stuck().then(1)),
    (
        "no hardware fault found, and the job did not ask for this (hang=1)",
        lambda: quiet_and_looked_at(ANY),
        lambda: quiet_and_looked_at(f"{ANY},hang=1"),
    ),
    (
        "3 jobs stopped at about the same time: a common cause is likely",
        lambda: stuck_beside(3),
        lambda: stuck_beside(2),
    ),
    (
        "Task 0 of step 0 on n1 ended with exit code 3",
        lambda: task_ended(a_run(), 3 << 8, 60.0),
        lambda: task_ended(a_run(), 3 << 8, 5.0),
    ),
    (
        "Task 0 of step 0 on n1 ended by signal 9 60 s ago, and no end of its step was told: `srun --kill-on-bad-exit`",
        lambda: task_ended(a_run(), KILLED, 60.0),
        lambda: task_ended(a_run(), KILLED, 60.0).ask(),
    ),
    (
        "n1 fell silent together with others: ",
        lambda: silent_with_others("n1", "n5"),
        lambda: silent_with_others("n6", "n7"),
    ),
    (
        "s Slurm waits for n2 to clean up (n2: its Prolog or Epilog runs, or a process of the job does not end)",
        lambda: cleaning(11.0),
        lambda: cleaning(9.0),
    ),
    (
        "(n2: Slurm waits there for n1, or its Prolog or Epilog runs, or a process does not end)",
        lambda: cleaning(11.0).node("n1", base=NodeBase.DOWN),
        lambda: cleaning(11.0).node("n4", base=NodeBase.DOWN),
    ),
    ("; the job can start again after that", lambda: cleaning(11.0), lambda: cleaning(400.0)),
    (
        "`scontrol update nodename=n2 state=down reason=stuck` ends the waiting",
        lambda: cleaning(400.0),
        lambda: cleaning(),
    ),
    ("n2: it does not respond", lambda: cleaning().node("n2", responding=False), lambda: cleaning()),
    ("n2: a process that cannot be killed: D", lambda: cleaning_stuck("os.dstate"), lambda: cleaning_stuck("disk")),
    (
        "sound nodes of the run still clean up, because Slurm waits there for ",
        lambda: let_go.lost_batch_host().after(0.31),
        lambda: let_go.lost_batch_host().after(0.2),
    ),
    (
        "job 7: the rest of its lost run is ended on n[2-3]",
        lambda: let_go.lost_batch_host().after(0.31),
        lambda: let_go.lost_batch_host(opted=False).after(0.31),
    ),
]
ANY = "any:3,age=0"


def left_behind(restart: int) -> Picture:
    picture = a_run()
    words = [replace(word, restart=restart, left="n1: 12 redis") for word in picture.seen.opted_in]
    return picture.see(opted_in=tuple(words))


def saved_at(step: int) -> Picture:
    return remembered(in_queue().then(1), saved=Saved(path="/c", step=step, at=T0))


def slow_pace(pace_s: float | None) -> Picture:
    return hang.stepping(hang.a_job(), ago_s=3600.0, pace_s=pace_s)


def quiet(seconds: float, mode: str = ANY) -> Picture:
    return hang.quiet(hang.a_job(mode), "n1", "n2", for_s=seconds)


def quiet_and_looked_at(mode: str) -> Picture:
    picture = quiet(4000.0, mode).then(3.0)
    name = picture.memory.jobs[J].hang
    assert name is not None
    for node in ("n1", "n2"):
        picture = picture.agent(node, bundles=(name.name,), checked_at=picture.now)
    return picture


def stuck_beside(count: int) -> Picture:
    """`count` jobs stand still since the same time; what job 7 did is kept."""
    picture = hang.answered(hang.stuck().then(3.0))
    mem = picture.memory.jobs[J]
    others = {JobId(7 + more): replace(mem, id=JobId(7 + more)) for more in range(count)}
    for id in range(8, 7 + count):
        picture = picture.job(id, on=(f"n{id - 5}",), started=T0 - 7200.0, submitted=T0 - 7200.0)
    return replace(picture, memory=replace(picture.memory, jobs=others))


def silent_with_others(*on: str) -> Picture:
    picture = a_cluster(8).job(on=on).opted_in().then(60)
    return picture.agent_lost("n1", "n2", "n3", "n4").then(1.0)


def cleaning(after_s: float = 11.0) -> Picture:
    return let_go.requeued_and_cleaning().after(after_s)


def cleaning_stuck(check: str) -> Picture:
    return let_go.requeued_and_cleaning().failing("n2", Severity.INFO, check=check, text="D", event=False).after(11.0)


def short_of(word: str) -> Callable[[], Picture]:
    return lambda: answered(the_job_waits(), replace(fits.LATER, missing=word))


FIT: list[Row] = [
    (
        "Slurm's own test does not tell whether it fits: idle nodes are counted (`steward doctor`).",
        lambda: answered(the_job_waits(), UNKNOWN),
        lambda: answered(the_job_waits(), fits.LATER),
    ),
    (
        "it would start now, on n[1,3-4], if it were first in the queue",
        lambda: answered(the_job_waits(), fits.NOW),
        lambda: answered(the_job_waits(), fits.LATER),
    ),
    (
        "the nodes that it needs are in use, for 600 s more at most, by the time limits of their jobs",
        lambda: answered(the_job_waits(), fits.LATER),
        lambda: answered(the_job_waits(), fits.NOW),
    ),
    (
        "too few of the nodes in service could take it",
        lambda: answered(the_job_waits(), replace(fits.NEVER, missing="")),
        lambda: answered(the_job_waits(), fits.NEVER),
    ),
    ("Slurm's own test, 0 s ago: ", lambda: answered(the_job_waits(), fits.NOW), lambda: the_job_waits()),
    (
        "Slurm does not let it start on any node now (Dependency)",
        lambda: keep_on(reason="Dependency"),
        lambda: keep_on(reason="Resources"),
    ),
    (
        "Slurm says that no node fits it (BadConstraints), though it ran before. Slurm before 23.11.11, 24.05.6 and "
        "24.11.1 says so of an exclusive job whose nodes went DOWN while it cleaned up: restart slurmctld",
        lambda: in_queue(reason="BadConstraints", excluded=names()),
        lambda: in_queue(reason="BadConstraints", excluded=names("n2")),
    ),
    *((text, short_of(word), short_of("")) for word, text in MISSING.items()),
]


ROWS = [*RULINGS, *OPTING, *ASKS, *EVIDENCE, *ENDS, *QUEUE, *KEPT, *STILL, *FIT]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())


_VIEWS = (ROOT / "views/explain.py", ROOT / "views/explain_fit.py")
_OF_NODES = (
    "explain_node|_known_of_node|_why_out|_drained_by_us|_done_about|_spare|_agent|_case|_no_case|_past_case"
    "|_LEFT|_UNUSED|table|_stranded"
)


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    facts = [ROOT / f"policy/facts/{name}.py" for name in ("told_to_save", "standing_still")]
    paths = [*_VIEWS, *facts, *sorted((ROOT / "policy/job").glob("*.py"))]
    assert lacking(paths, _OF_NODES, ((said(true()), said(false())) for _, true, false in ROWS)) == []
