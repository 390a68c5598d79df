"""A fault that is found after a job's end overturns what was ruled on that end."""

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from steward.model.action import RequeueJob
from steward.model.ask import AskKind, OptedIn
from steward.model.ids import InstanceId, JobId
from steward.model.job import JobState
from steward.model.ledger import Ending
from steward.model.node import NodeBase
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from steward.model.witness import Witness
from steward.policy.facts.dying import LEAVING_S
from tests.builders.picture import Picture, a_cluster, an_instance, n, names

J = JobId(7)
BY_TERM, BY_CODE = 15, 200 << 8


def tries(picture: Picture) -> list[RequeueJob]:
    return [a for a in picture.plan().actions if isinstance(a, RequeueJob)]


def memory(picture: Picture) -> JobMemory:
    return picture.plan().memory.jobs[J]


def running(mode: str = "1", on: tuple[str, ...] = ("n1", "n2"), **fields: Any) -> Picture:
    return a_cluster().job(on=on, **fields).opted_in(mode=ResumeMode.parse(mode)).then(100)


def failed(picture: Picture, status: int = BY_CODE, reason: str = "") -> Picture:
    """Its script ended badly, its shim was told that nothing speaks against the nodes, and Slurm calls it FAILED."""
    asked = picture.ask(AskKind.BATCH, node="n1", status=status).then(0.1).checked("n1", "n2").then(0.1)
    assert memory(asked).attempts[-1].why.rule == "resume.no_evidence"
    end: dict[str, Any] = {"state": JobState.FAILED, "ended": asked.now, "exit_status": status, "reason": reason}
    over = asked.see(asks=()).change_job(**end).then(0.1)
    assert memory(over).ended is not None
    return over


def completed(picture: Picture) -> Picture:
    return picture.change_job(state=JobState.COMPLETED, ended=float(int(picture.now)), exit_status=0)


def stopping(picture: Picture, *given: str) -> Picture:
    """Their agents say as their last word that their hosts are being shut down."""
    for name in given:
        picture = picture.agent_lost(name, ago_s=0.0).agent(name, host_ends=True)
    return picture


def gone(picture: Picture, name: str) -> Picture:
    return picture.lost(name).then(0.1)


@pytest.mark.parametrize("gap_s", [0.1, 2.0, 60.0, 85.0])
@pytest.mark.parametrize("status", [BY_TERM, BY_CODE, 143 << 8, 1 << 8])
def test_a_job_whose_script_was_told_to_stop_comes_back_when_its_node_is_found_lost(gap_s: float, status: int) -> None:
    picture = failed(running(), status).wait(gap_s)
    assert tries(picture) == []
    found = picture.lost("n1")
    (requeue,) = tries(found)
    assert names("n1") <= requeue.exclude
    back = found.then(0.1)
    assert (memory(back).resumes, memory(back).attempts[-1].why.rule) == (1, "resume.late")
    again = back.requeued().then(1.0)
    assert memory(again).resumes == 1
    assert memory(again).pending_from is not None


@pytest.mark.parametrize("status", [1, 15, 53])
def test_a_script_that_asked_was_launched_whatever_status_slurm_gives_it(status: int) -> None:
    """SIGHUP (1) and the real-time signal 53 look like statuses that Slurm gives to launches that failed."""
    over = failed(running(), status, reason="JobLaunchFailure")
    assert tries(over) == []
    assert tries(over.wait(60.0).lost("n1")), "a fault is evidence all the same"


class Words(tuple[OptedIn, ...]):
    """Counts how often they are gone through."""

    times: ClassVar[int] = 0

    def __iter__(self) -> Iterator[OptedIn]:
        type(self).times += 1
        return super().__iter__()


def test_a_user_whose_jobs_fail_by_the_hundred_makes_no_turn_go_through_all_words_for_each() -> None:
    picture = failed(running())
    (mem,), (job,), (word,) = picture.memory.jobs.values(), picture.seen.jobs.values(), picture.seen.opted_in
    (runs,) = picture.memory.ledger.values()
    ids = [JobId(id) for id in range(100, 400)]
    many = picture.see(
        jobs={id: replace(job, id=id) for id in ids}, opted_in=Words(replace(word, job=id) for id in ids)
    )
    jobs = MappingProxyType({id: replace(mem, id=id) for id in ids})
    memory = replace(many.memory, jobs=jobs, ledger=MappingProxyType(dict.fromkeys(ids, runs)))
    Words.times = 0
    assert tries(replace(many, memory=memory)) == []
    assert Words.times < 10


@pytest.mark.parametrize("status", [BY_TERM, BY_CODE, 1 << 8])
def test_a_node_that_lived_on_for_longer_than_a_shutdown_takes_did_not_end_what_ended_before(status: int) -> None:
    """After a power cut not every job that failed on the machine in the last minutes runs again."""
    over = failed(running(), status).wait(120.0)
    assert tries(over.lost("n1")) == []
    lost = over.lost("n1").then().marked("n1").then(1)
    assert tries(lost) == []
    assert tries(lost.then(20).heard("n1")) == [], "nor when its new machine is there"


def test_a_new_head_does_not_overturn_what_the_old_one_ruled_before_the_agents_have_told_of_the_jobs_steps() -> None:
    """Until then it cannot know that no step used the lost node."""
    picture = running()
    words = tuple(replace(word, has_steps=True, told_by=names("n1")) for word in picture.seen.opted_in)
    lost = picture.see(opted_in=words).lost("n2").then(0.1).marked("n2").change_job(nodes=names("n1"))
    over = failed(lost.then(45))
    assert tries(over.then(1.0)) == []
    new = over.see(agents={}, opted_in=(), agents_since=over.now).after(0.5)
    assert tries(new) == []
    assert tries(new.see(agents=over.seen.agents, opted_in=words).then(0.5)) == []


def test_one_users_many_jobs_that_come_back_for_a_late_fault_do_not_hold_up_a_turn() -> None:
    """Jobs that fail by the hundred have failed on any node that dies; all of them come back, in several turns."""
    picture = running()
    for id in range(100, 120):
        picture = picture.job(id, on=("n1", "n2")).opted_in(id)
    picture = picture.then(0.1)
    for id in range(100, 120):
        picture = picture.ask(AskKind.BATCH, id=id, node="n1", status=BY_CODE)
    over = picture.then(0.1).checked("n1", "n2").then(0.1).see(asks=())
    for id in range(100, 120):
        over = over.change_job(id, state=JobState.FAILED, ended=over.now, exit_status=BY_CODE)
    lost = stopping(over.then(0.1), "n2").after(0.1)
    counts, back = [], set[JobId]()
    for _ in range(6):
        found = {a.job for a in tries(lost)} - back
        counts.append(len(found))
        back |= found
        lost = lost.then(0.1)
    assert counts == [16, 4, 0, 0, 0, 0]


def test_a_node_that_fell_silent_soon_after_the_end_may_be_found_lost_minutes_later() -> None:
    silent = failed(running()).wait(20.0).agent_lost("n1")
    late = silent.wait(250.0).witnessed("n1", Witness.REFUSED)
    assert len(tries(late)) == 1


def test_its_lost_run_is_told_as_one_that_was_requeued() -> None:
    back = gone(failed(running()).wait(20), "n1").requeued().then(1.0)
    (run,) = back.plan().memory.ledger[J]
    assert (run.ending, run.culprits) == (Ending.REQUEUED, names("n1"))


def test_a_fault_long_after_the_end_or_on_a_node_that_the_job_did_not_have_brings_nothing_back() -> None:
    assert tries(failed(running()).wait(310).lost("n1")) == []
    assert tries(failed(running()).wait(20).lost("n3")) == []


@pytest.mark.parametrize("mode", ["any:1,age=80000", "any:3"])
def test_nothing_is_overturned_without_evidence_whatever_the_job_asked_for(mode: str) -> None:
    picture = running(mode)
    asked = picture.ask(AskKind.BATCH, node="n1", status=BY_TERM, mode=ResumeMode.parse(mode)).then(0.1)
    told = asked.checked("n1", "n2").then(0.1)
    over = told.see(asks=()).change_job(state=JobState.FAILED, ended=told.now, exit_status=BY_TERM).then(0.1)
    assert tries(over.wait(60)) == []
    assert len(tries(over.wait(60).lost("n1"))) == 1


@pytest.mark.parametrize("end", [{"state": JobState.CANCELLED}, {"state": JobState.FAILED, "exit_status": 93 << 8}])
def test_what_a_person_cancelled_or_said_never_again_is_not_brought_back(end: dict[str, Any]) -> None:
    picture = running()
    over = picture.change_job(ended=picture.now, **end).then(0.1)
    assert tries(stopping(over, "n1")) == []
    assert tries(over.wait(5).lost("n1")) == []


def test_a_job_that_slurm_has_forgotten_or_that_a_person_put_back_is_left_alone() -> None:
    over = failed(running())
    assert tries(over.see(jobs={}).lost("n1")) == []
    assert tries(over.requeued().lost("n1")) == []


def test_it_is_brought_back_once_though_its_next_run_ends_at_once() -> None:
    back = gone(failed(running()), "n1").requeued().then(1.0)
    nodes: dict[str, Any] = {"nodes": names("n3", "n4"), "batch_host": None, "restarts": 1}
    anew = back.change_job(state=JobState.RUNNING, started=back.now, ended=None, **nodes).then(30)
    over = anew.change_job(state=JobState.FAILED, ended=anew.now, exit_status=BY_CODE).wait(60)
    assert tries(over) == []
    assert memory(over).resumes == 1


# The agent's last word: its host is being shut down.


@pytest.mark.parametrize("before_s", [0.0, 1.5])
@pytest.mark.parametrize("status", [BY_TERM, BY_CODE])
def test_the_word_that_the_host_is_shut_down_is_evidence_though_nobody_found_the_node_lost(
    status: int, before_s: float
) -> None:
    over = failed(running(), status)
    assert len(tries(stopping(over.after(before_s), "n1"))) == 1


def test_a_job_that_had_failed_before_its_host_was_shut_down_in_good_order_failed_by_itself() -> None:
    """A machine that is switched off because it is idle, or by its admin, says nothing about the jobs before."""
    over = failed(running()).wait(20)
    told = stopping(over, "n1").then(1)
    assert tries(told) == []
    assert tries(told.lost("n1")) == []
    assert tries(told.then(60).node("n1", base=NodeBase.DOWN)) == []


def test_a_job_that_ended_well_while_its_host_was_shut_down_is_not_done() -> None:
    told = stopping(running(), "n1").then(3.0)
    over = completed(told)
    (requeue,) = tries(over)
    assert requeue.told_at == over.seen.jobs[J].ended
    assert memory(over).attempts[-1].why.rule == "resume.late"


def test_nor_is_one_whose_end_was_seen_before_the_word() -> None:
    over = completed(running()).then(0.5)
    assert memory(over).ended is not None
    assert len(tries(stopping(over, "n2"))) == 1


@pytest.mark.parametrize("name", ["n1", "n3"])
def test_a_job_that_ended_well_before_that_or_elsewhere_is_complete(name: str) -> None:
    over = completed(running()).then(0.5).wait(5.0 if name == "n1" else 0.0)
    assert tries(stopping(over, name)) == []
    assert tries(over.lost(name)) == []


def test_a_node_that_is_taken_away_when_its_jobs_have_ended_ended_none_of_them() -> None:
    """Slurm and the head wait for the last job, and may end the machine in the same second."""
    for flag in ("REBOOT_ISSUED", "POWERING_DOWN"):
        over = completed(running()).then(0.5).node("n1", flags=frozenset({flag}))
        assert tries(stopping(over, "n1")) == []


def test_the_word_outlives_the_machine_that_said_it() -> None:
    told = stopping(running(), "n1").then(1.0)
    anew = told.heard("n1").agent("n1", host_ends=False).change_job(state=JobState.FAILED, ended=told.now + 1)
    assert len(tries(anew.after(2.0))) == 1


def test_a_word_without_the_hosts_own_is_taken_back_when_the_agent_is_back() -> None:
    told = stopping(running(), "n1").agent("n1", leaves=True).then(1.0)
    over = completed(told)
    assert len(tries(over)) == 1
    assert tries(completed(told.heard("n1").agent("n1", host_ends=False, leaves=False))) == []


@pytest.mark.parametrize("ended_s", [-1.0, 0.0, 1.0, 10.0])
def test_an_agent_that_was_told_to_end_alone_makes_no_finished_job_run_again_though_its_node_is_lost_then(
    ended_s: float,
) -> None:
    """As when agent and slurmd are stopped for an upgrade, and the machine dies meanwhile."""
    picture, left = running(), 5.0
    ended = picture.now + left + ended_s
    told = picture.after(left).agent_lost("n1", ago_s=0.0).agent("n1", leaves=True)
    over = told.after(max(ended_s, 0.0)).change_job(state=JobState.COMPLETED, ended=ended, exit_status=0).then(0.5)
    assert tries(over) == []
    assert tries(gone(over, "n1").node("n1", base=NodeBase.DOWN).then(60)) == []


# The provider's word: it takes the machine away.


def reclaimed(picture: Picture, *given: str) -> Picture:
    told = {id: replace(i, interrupted="spot, in 2 min") for id, i in picture.seen.instances.items() if i.node in given}
    return picture.see(instances={**picture.seen.instances, **told})


@pytest.mark.parametrize("status", [BY_TERM, BY_CODE, 143 << 8])
def test_a_job_that_fails_after_its_provider_said_that_it_takes_the_machine_is_resumed_elsewhere(status: int) -> None:
    picture = reclaimed(running(), "n1").then(30)
    asked = picture.ask(AskKind.BATCH, node="n1", status=status).then(0.1)
    (requeue,) = tries(asked.after(LEAVING_S))
    assert names("n1") <= requeue.exclude
    assert "n1: its provider takes its machine away" in requeue.why.evidence
    assert n("n1") in memory(asked.then(LEAVING_S).then(0.1).requeued().then(60)).excluded


def test_also_where_the_machine_is_listed_so_only_after_the_jobs_end() -> None:
    assert len(tries(reclaimed(failed(running()).wait(20), "n2"))) == 1


def test_a_job_that_ends_well_or_is_cancelled_meanwhile_or_fails_elsewhere_or_before_is_left_alone() -> None:
    picture = reclaimed(running(), "n1").then(30)
    assert tries(picture) == []
    assert tries(completed(picture).then(1)) == []
    assert tries(picture.change_job(state=JobState.CANCELLED, ended=picture.now).then(1)) == []
    assert tries(reclaimed(failed(running()), "n3").then(1)) == []
    assert tries(reclaimed(failed(running()).wait(100), "n1").then(1)) == []


def test_the_word_is_forgotten_when_another_machine_bears_the_name_and_kept_when_the_old_one_is_merely_gone() -> None:
    told = reclaimed(running(), "n1").then(0.1)
    gone = {id: i for id, i in told.seen.instances.items() if i.node != "n1"}
    assert told.see(instances=gone).then(1).plan().memory.nodes[n("n1")].reclaimed_from is not None
    anew = told.see(instances={**gone, InstanceId("i-new"): replace(an_instance(n("n1")), id=InstanceId("i-new"))})
    assert n("n1") not in anew.then(1).plan().memory.nodes
