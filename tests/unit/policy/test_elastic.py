"""An elastic run grows into idle nodes, gives them back, and goes on without what is lost."""

from dataclasses import replace
from itertools import pairwise

import pytest

from steward.model.action import CancelReplica, RequeueJob
from steward.model.agent_action import ResizeRun, SubmitReplica
from steward.model.desired import ElasticPolicy
from steward.model.elastic import Activity, Cause, RunPhase, replica_comment
from steward.model.fit import MISSING, Fit, FitState, Question
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from steward.model.witness import Witness
from steward.policy.draft import Draft
from steward.policy.elastic.replicas import FIT_S
from steward.policy.facts.turn_share import AT_ONCE
from steward.policy.job.exclude import is_short_without
from steward.views.explain_group import run_lines
from tests.builders.picture import USER, a_cluster, action_types, n
from tests.fakes.elastic_world import QUICK, RUN, ElasticWorld


def grown(**fields: object) -> ElasticWorld:
    """As large as it may be, and at rest."""
    world = ElasticWorld(**fields)  # type: ignore[arg-type]
    world.go(40)
    assert world.size == 5
    assert world.run.phase is RunPhase.RUNNING
    return world


def test_it_grows_into_idle_nodes_at_once_and_once() -> None:
    world = grown()
    assert [order.generation for order in world.ordered] == [2]
    assert sum(each.nodes for each in world.submitted) == 3
    assert [change.cause for change in world.run.events] == [Cause.START, Cause.GROW]


def test_at_rest_nothing_is_done() -> None:
    world = grown()
    world.step()
    assert world.step().actions == ()


def test_a_run_without_a_coordinator_is_told_of_once_until_its_base_begins_anew() -> None:
    world = ElasticWorld()
    world.word = replace(world.word, alone="no token")
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.go(20)
    told = [event for event in world.events if event.kind == "elastic.alone"]
    assert [event.text for event in told] == ["elastic run 7: stays at its size, it has no coordinator: no token"]
    assert world.submitted == []
    world.picture = world.picture.change_job(RUN, restarts=1)
    world.word = replace(world.word, restart=1, alone="")
    world.go(20)
    assert world.run.why_no_coordinator == ""
    assert world.submitted, "it has one again, and grows"


def test_a_replica_is_asked_for_as_its_user_through_the_agent_of_the_batch_host() -> None:
    world = ElasticWorld()
    world.go(3)
    first = world.submitted[0]
    assert (first.run, first.node, first.nodes, first.grace_s) == (RUN, n("n1"), 1, 20)
    assert len({each.token for each in world.submitted}) == 3


def test_preempted_it_goes_on_smaller_and_gives_the_nodes_back_before_the_grace_ends() -> None:
    world = grown()
    victim = world.replicas()[0]
    world.warn(victim.id)
    world.go(6)
    assert world.size == 4
    assert not victim.nodes & world.word.members
    assert victim.id in world.cancelled
    assert world.run.events[-1].cause is Cause.PREEMPTED


def test_a_node_that_is_lost_is_left_at_once_and_replaced_when_another_is_idle() -> None:
    world = grown(nodes=5)
    lost = sorted(world.word.members - world.jobs()[RUN].nodes)[0]
    world.die(lost)
    world.go(5)
    assert world.size == 4
    assert world.ordered[-1].grace_s == 0
    assert world.run.events[-1].cause is Cause.FAULT
    world.revive(lost)
    world.go(120)
    assert world.size == 5


def test_a_change_that_an_outage_kept_from_its_coordinator_is_ordered_again_when_all_are_back() -> None:
    world = ElasticWorld(deaf=True)
    while not world.ordered:
        world.step()
    world.picture = world.picture.agent_lost("n1").agent("n1", fell_silent=True).node("n1", responding=False)
    world.go(10)
    assert world.run.phase is RunPhase.FAULTED
    world.picture, world.deaf = world.picture.heard("n1").node("n1", responding=True), False
    world.go(15)
    assert world.size == 5
    assert [order.generation for order in world.ordered] == [2, 3]


def test_a_member_whose_slurmd_has_a_full_port_is_not_lost_while_its_agent_is_heard() -> None:
    """Any user can fill it, from any host."""
    world = ElasticWorld()
    world.go(120)
    size, changes = world.size, len(world.run.events)
    world.picture = world.picture.node("n1", responding=False)
    world.go(10)
    assert world.run.phase is not RunPhase.FAULTED
    assert (world.size, len(world.run.events)) == (size, changes)


def test_a_member_whose_both_services_are_restarted_is_not_lost_though_slurm_asked_meanwhile() -> None:
    world = ElasticWorld()
    world.go(120)
    size, changes = world.size, len(world.run.events)
    left = world.picture.agent_lost("n1").agent("n1", leaves=True).node("n1", responding=False)
    for _ in range(5):
        world.picture = left.witnessed("n1", Witness.REFUSED)
        world.go(1)
        left = world.picture
        assert world.run.phase is not RunPhase.FAULTED
    assert (world.size, len(world.run.events)) == (size, changes)


def test_a_run_that_only_seemed_to_lose_a_member_goes_on_as_it_was_and_grows_without_a_pause() -> None:
    world = ElasticWorld()
    world.step()
    world.picture = world.picture.agent_lost("n1").agent("n1", fell_silent=True).node("n1", responding=False)
    world.go(3)
    assert world.run.phase is RunPhase.FAULTED
    assert not world.ordered
    world.picture = world.picture.heard("n1").node("n1", responding=True)
    world.go(6)
    assert world.size == 5, "sooner than a pause after a change of its size ends"
    assert [change.cause for change in world.run.events] == [Cause.START, Cause.GROW]


def test_others_who_wait_get_the_nodes_of_replicas() -> None:
    world = grown(nodes=5)
    other = world.queue(2)
    world.go(12)
    assert world.jobs()[other].state is JobState.RUNNING
    assert world.size == 3


def test_a_node_that_still_cleans_up_for_who_waits_is_not_given_twice() -> None:
    world = grown(nodes=5)
    world.cleans_s = 4.0
    other = world.queue(1)
    world.go(14)
    assert world.jobs()[other].state is JobState.RUNNING
    assert world.size == 4


def test_a_job_whose_start_is_seen_late_gets_no_second_node() -> None:
    world = grown(nodes=5)
    world.starts_s = 3.0
    other = world.queue(1)
    world.go(14)
    assert world.jobs()[other].state is JobState.RUNNING
    assert world.size == 4
    world.starts_s = 0.0
    another = world.queue(1)
    world.go(14)
    assert world.jobs()[another].state is JobState.RUNNING
    assert world.size == 3


def test_a_job_whose_node_was_long_in_cleaning_up_and_whose_start_is_seen_late_gets_no_second_node() -> None:
    """Seen with processes of PyTorch on a busy machine: seven seconds from scancel to the last of them."""
    world = grown(nodes=5, cleans_s=9.0, starts_s=3.0)
    other = world.queue(1)
    world.go(25)
    assert world.jobs()[other].state is JobState.RUNNING
    assert world.size == 4


def test_it_does_not_grow_into_nodes_that_others_wait_for() -> None:
    world = ElasticWorld(nodes=3)
    world.picture = world.picture.node("n3", base=world.picture.seen.nodes[n("n3")].base)
    world.queue(1)
    plan = world.picture.plan()
    assert not [action for action in plan.actions if isinstance(action, SubmitReplica)]


@pytest.mark.parametrize(("missing", "grows"), [("features", False), ("gres", False), ("nodelist", True), ("", True)])
def test_it_grows_only_where_slurm_finds_what_its_base_asks_for(missing: str, grows: bool) -> None:
    """A replica names no nodes, and has its own time limit: that its base could not start says nothing else."""
    world = ElasticWorld(nodes=3)
    (question,) = world.picture.plan().questions
    fit = Fit(state=FitState.LATER, at=world.now, missing=missing)
    world.picture = world.picture.see(fits={question: fit})
    plan = world.picture.plan()
    assert action_types(plan) == ([SubmitReplica] if grows else [])
    told = [event.text for event in plan.events if event.kind == "elastic.unfit"]
    assert [MISSING[missing] in text for text in told] == ([] if grows else [True])


def test_each_replica_gets_the_nodes_that_slurm_would_choose() -> None:
    """Each is kept off the nodes of the others: those of the first one must not be the only ones for the second."""
    world = ElasticWorld(nodes=5, spec="4")
    fits = dict[Question, Fit]()
    for chosen in ("n5", "n3"):
        questions = world.picture.see(fits=fits).plan().questions
        new = next(one for one in questions if one not in fits)
        fits[new] = Fit(state=FitState.NOW, at=world.now, nodes=frozenset({n(chosen)}))
    submitted = [a for a in world.picture.see(fits=fits).plan().actions if isinstance(a, SubmitReplica)]
    assert [{"n3", "n4", "n5"} - action.exclude for action in submitted] == [{"n4", "n5"}, {"n3", "n4"}]


def test_slurm_is_asked_again_a_little_later_whether_it_may_grow() -> None:
    world = ElasticWorld(nodes=3)
    (question,) = world.picture.plan().questions
    world.picture = world.picture.see(fits={question: Fit(state=FitState.LATER, at=world.now, missing="gres")})
    plan = world.picture.plan()
    assert plan.wake_at is not None
    assert plan.wake_at <= world.now + FIT_S
    assert question in world.picture.then(FIT_S + 1).plan().questions


def test_when_its_base_ends_all_replicas_end() -> None:
    world = grown()
    world.picture = world.picture.change_job(7, state=JobState.CANCELLED, ended=world.now)
    world.go(3)
    assert world.run.phase is RunPhase.ENDED
    assert world.replicas() == []


def test_replicas_go_when_their_base_begins_to_end_however_long_its_nodes_clean_up() -> None:
    world = grown()
    left = sorted(job.id for job in world.replicas())
    world.cleans_s = 30.0
    world.end(RUN)
    world.go(2)
    assert sorted(world.cancelled) == left
    world.go(60)
    assert world.run.phase is RunPhase.ENDED


def test_replicas_that_wait_go_too_when_their_base_begins_to_end() -> None:
    world = ElasticWorld(nodes=3, spec="3")
    world.go(3)
    world.picture = world.picture.change_job(100, state=JobState.PENDING, nodes=frozenset(), started=None)
    world.cleans_s = 30.0
    world.end(RUN)
    world.go(2)
    assert world.cancelled == [100]


def test_a_replica_that_slurm_ends_already_is_not_ended_again_and_again() -> None:
    world = grown(cleans_s=30.0)
    world.end(RUN)
    world.go(55)
    assert sorted(world.cancelled) == sorted(id for id in world.jobs() if id >= 100)


def test_when_its_training_is_done_its_replicas_end_although_the_script_of_its_base_goes_on() -> None:
    world = ElasticWorld()
    world.go(30)
    assert world.replicas()
    world.word = replace(world.word, state=Activity.ENDED)
    world.go(10)
    world.word = replace(world.word, state=Activity.WAITING)
    world.go(10)
    assert world.replicas() == []
    assert not world.run.is_open
    assert world.run.why == "its training is done, or its base job has ended"


def test_replicas_that_end_with_their_base_are_no_failed_growth() -> None:
    world = ElasticWorld()
    world.go(3)
    for job in world.replicas():
        world.end(job.id)
    world.end(RUN)
    world.go(3)
    assert not world.run.is_open
    assert [event.text for event in world.events if event.kind == "elastic.no_use"] == []


def test_a_replica_of_a_run_that_nobody_knows_is_ended_after_a_minute() -> None:
    picture = a_cluster().job(100, on=("n4",), comment="steward-elastic:7:r1")
    first = picture.plan()
    assert not [action for action in first.actions if isinstance(action, CancelReplica)]
    waiting = picture.then(30.0)
    assert waiting.plan().memory.bystanders is waiting.memory.bystanders, "nothing is new while it waits"
    later = picture.then(61.0).plan()
    assert [action.job for action in later.actions if isinstance(action, CancelReplica)] == [100]


def test_a_job_that_names_anothers_run_is_no_replica() -> None:
    world = grown()
    id = world.queue(1, comment=f"steward-elastic:{RUN}:x", user_id=4711)
    world.go(70)
    assert id not in world.cancelled
    assert all(one.job != id for one in world.run.replicas)


def test_a_word_in_anothers_name_counts_for_nothing() -> None:
    world = ElasticWorld(uid=4711)
    world.go(5)
    assert RUN not in world.picture.memory.elastic


def test_a_person_may_ask_for_a_size_and_pause_it() -> None:
    world = grown()
    run = replace(world.run, wish=3)
    world.picture = replace(world.picture, memory=replace(world.picture.memory, elastic={RUN: run}))
    world.go(10)
    assert world.size == 3
    assert world.run.events[-1].cause is Cause.ASKED
    assert len(world.replicas()) == 1


def test_a_coordinator_that_does_nothing_leaves_the_run_as_it_is() -> None:
    world = ElasticWorld(deaf=True)
    world.go(60)
    assert world.size == 2
    assert world.run.backoff_s >= QUICK.backoff_s


def test_a_submission_that_fails_is_not_tried_again_at_once() -> None:
    world = ElasticWorld(refuses=True)
    told = [event.text for _ in range(15) for event in world.step().events]
    assert len(world.submitted) == 3
    assert sum("could not be submitted: sbatch: no" in text for text in told) == 3


def test_submissions_that_fail_are_tried_ever_more_rarely() -> None:
    world = ElasticWorld(refuses=True)
    world.go(300)
    asked = [event.at for event in world.events if event.kind == "elastic.asks"]
    gaps = sorted({after - before for before, after in pairwise(asked)} - {0.0})
    assert gaps
    assert gaps[-1] >= 2 * gaps[0] > 0


def test_a_replica_that_never_joins_is_ended_and_asked_for_ever_more_rarely() -> None:
    world = ElasticWorld(joins=False, base=4, spec="5")
    world.go(600)
    asked = [event.at for event in world.events if event.kind == "elastic.asks"]
    waits = [after - before - QUICK.form_s for before, after in pairwise(asked)]
    assert len(waits) >= 2
    assert waits[1] >= waits[0] + QUICK.backoff_s


def test_it_grows_into_a_node_that_a_resume_of_its_base_left_out_once_it_is_repaired() -> None:
    world = ElasticWorld(nodes=4, spec="3")
    mode = ResumeMode.parse("1")
    memory = JobMemory(
        id=RUN, uid=USER, mode=mode, opted_at=0.0, excluded=frozenset({n("n3")}), excluded_by_user=frozenset({n("n4")})
    )
    world.picture = world.picture.change_job(7, excluded=frozenset({n("n3"), n("n4")}))
    world.picture = replace(world.picture, memory=replace(world.picture.memory, jobs={RUN: memory}))
    world.go(20)
    assert [(one.exclude & {n("n3"), n("n4")}) for one in world.submitted] == [{n("n4")}]
    assert world.word.members == {n("n1"), n("n2"), n("n3")}


def test_replicas_that_end_at_once_are_asked_for_ever_more_rarely() -> None:
    world = ElasticWorld(nodes=3, spec="3", joins=False)
    for _ in range(400):
        world.step()
        for job in [one.job for one in world.run.replicas if one.job is not None]:
            world.end(job)
    assert 2 <= len(world.submitted) <= 8  # 20 s, 40 s, then every 80 s
    assert world.size == 2


def test_a_replica_never_shares_a_node_with_its_base() -> None:
    world = ElasticWorld()
    world.go(3)
    assert all(world.jobs()[RUN].nodes <= each.exclude for each in world.submitted)


def test_growth_must_pay_for_its_pause() -> None:
    world = ElasticWorld()
    world.picture = world.picture.change_job(7, time_limit_s=605.0)  # ends in 5 s
    world.go(5)
    assert world.submitted == []


def test_a_replica_is_not_told_to_leave_before_what_it_does_has_paid_for_the_pause() -> None:
    """Slurm tells it so a grace, and up to a minute more, before its time limit, which is the base's end at most."""
    world = ElasticWorld(policy=ElasticPolicy(), spec="6")
    ends = (world.now - (world.jobs()[RUN].started or 0.0)) + 660.0
    world.picture = world.picture.change_job(7, time_limit_s=ends)
    world.go(5)
    assert world.submitted == []
    world.picture = world.picture.change_job(7, time_limit_s=ends + 300.0)
    world.go(5)
    assert {(each.minutes, each.grace_s) for each in world.submitted} == {(15, 600)}


def test_the_time_limit_of_replicas_is_what_they_may_work_and_their_notice() -> None:
    world = ElasticWorld(policy=ElasticPolicy(replica_limit_s=600.0), spec="6")
    world.go(5)
    assert {each.minutes for each in world.submitted} == {21}
    without = ElasticWorld(policy=ElasticPolicy(replica_limit_s=600.0), spec="6,grace=60")
    without.go(5)
    assert {each.minutes for each in without.submitted} == {12}


def test_a_lost_base_host_is_left_to_the_jobs_own_resume() -> None:
    world = grown()
    world.picture = world.picture.lost("n1")
    plan = world.picture.plan()
    assert not [action for action in plan.actions if isinstance(action, ResizeRun)]


def test_a_replica_on_a_lost_node_is_never_requeued() -> None:
    world = grown()
    victim = world.replicas()[0]
    world.picture = world.picture.opted_in(victim.id).then(1.0)
    assert victim.id not in world.picture.memory.jobs
    world.die(sorted(victim.nodes)[0])
    for _ in range(20):
        assert not [a for a in world.step().actions if isinstance(a, RequeueJob) and a.job == victim.id]


def test_flapping_is_answered_by_ever_longer_pauses() -> None:
    world = grown(nodes=5)
    began = len([change for change in world.run.events if change.cause is Cause.GROW])
    for _ in range(40):
        for job in [job for job in world.replicas() if job.is_active][:1]:
            world.warn(job.id)
        world.go(10)
    growths = [change for change in world.run.events if change.cause is Cause.GROW][began:]
    assert 1 <= len(growths) <= 9  # 10 s, 20 s, 40 s, then every 80 s
    assert world.run.backoff_s == QUICK.backoff_most_s


def test_a_replica_is_kept_from_the_nodes_of_the_run_and_of_other_replicas() -> None:
    world = ElasticWorld()
    world.go(3)
    assert [sorted(each.exclude) for each in world.submitted] == [
        ["n1", "n2", "n4", "n5"],
        ["n1", "n2", "n3", "n5"],
        ["n1", "n2", "n3", "n4"],
    ]


def test_a_replica_on_a_node_of_its_own_run_is_ended() -> None:
    world = grown()
    id = world.queue(1, comment=f"steward-elastic:{RUN}:x")
    world.picture = world.picture.change_job(
        id, state=JobState.RUNNING, nodes=frozenset({n("n2")}), batch_host="n2", started=world.now
    )
    plan = world.step()
    assert [(a.job, a.why.text) for a in plan.actions if isinstance(a, CancelReplica)] == [
        (id, "another part of the run is on its node")
    ]


def test_replicas_stay_while_a_run_that_began_anew_has_not_formed() -> None:
    world = grown()
    run = replace(world.run, phase=RunPhase.WAITING)
    world.picture = replace(world.picture, memory=replace(world.picture.memory, elastic={RUN: run}))
    world.word = replace(world.word, state=Activity.WAITING, members=frozenset())
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.go(QUICK.form_s - 45)  # a start may take that long
    assert world.cancelled == []
    world.go(60)
    assert len(world.cancelled) == 3


def test_idle_nodes_that_a_waiting_job_keeps_away_from_are_none_for_it() -> None:
    world = ElasticWorld(spec="4")  # n5 and n6 are idle
    world.go(40)
    assert world.size == 4
    world.queue(1, excluded=frozenset({n("n5"), n("n6")}))
    world.go(12)
    assert world.ordered[-1].members < frozenset(map(n, ("n1", "n2", "n3", "n4")))


def test_idle_nodes_of_two_partitions_are_not_enough_for_a_job_that_has_its_nodes_in_one() -> None:
    world = ElasticWorld(spec="4")  # n5 and n6 are idle
    world.go(40)
    world.picture = world.picture.node("n6", partitions=frozenset({"other"}))
    world.queue(2, partition="main,other")
    world.go(12)
    assert len(world.ordered[-1].members) == 3


def test_a_growth_waits_for_a_save_that_takes_longer_than_the_grace() -> None:
    """The grace is what a forced change has; nothing presses a growth."""
    world = ElasticWorld(saves_s=QUICK.grace_s + 30.0)
    world.go(90)
    assert (world.size, world.killed) == (5, 0)
    told = [event.text for event in world.events if event.kind == "elastic.called_off"]
    assert told == []


def test_a_growth_that_no_rank_answers_is_called_off_and_told_and_its_nodes_go_back() -> None:
    world = ElasticWorld(seams=False)
    world.go(45)
    assert (world.size, world.killed) == (2, 0)
    assert [event.text for event in world.events if event.kind == "elastic.called_off"] == [
        "elastic run 7: the growth from 2 to 5 nodes is called off: no rank finished a step within 35 s; "
        "next try in 20 s"
    ]
    assert world.word.state is Activity.RUNNING
    assert [change.cause for change in world.run.events] == [Cause.START], "no change of size was made"
    assert world.replicas() == []
    world.seams = True
    world.go(60)
    assert world.size == 5


def test_a_job_that_comes_to_wait_meanwhile_gets_the_nodes_at_once_and_the_run_loses_nothing() -> None:
    world = ElasticWorld(seams=False, nodes=5)
    while not world.ordered:
        world.step()
    other = world.queue(1)
    world.go(8)
    assert world.jobs()[other].state is JobState.RUNNING
    assert (world.size, world.killed, world.word.state) == (2, 0, Activity.RUNNING)
    assert any("called off: others need the nodes" in event.text for event in world.events)


def test_a_person_who_asks_for_fewer_nodes_waits_for_the_save_and_others_who_need_them_do_not() -> None:
    world = grown(nodes=5)
    world.seams = False
    run = replace(world.run, wish=3)
    world.picture = replace(world.picture, memory=replace(world.picture.memory, elastic={RUN: run}))
    world.go(300)
    assert (world.size, world.killed) == (5, 0)
    assert len([event for event in world.events if "a person asked" in event.text]) == 1
    world.queue(1)
    world.go(5)
    assert world.ordered[-1].patient is False
    assert world.run.cause is Cause.RECLAIMED


def test_a_run_whose_program_never_asks_does_not_grow_and_says_why() -> None:
    world = ElasticWorld(steerable=False)
    world.go(60)
    assert world.submitted == []
    assert [event.text for event in world.events if event.kind == "elastic.mute"] == [
        "elastic run 7: does not grow, as its program never asks whether to save (resize_wanted)"
    ]


def test_a_forced_change_says_what_it_cost() -> None:
    world = grown()
    victim = world.replicas()[0]
    world.warn(victim.id)
    while world.word.generation < 3:
        world.step()
    world.word = replace(world.word, unsaved=frozenset({n("n2")}), again=12, again_s=30.0)
    world.go(5)
    assert world.events[-1].text == (
        "elastic run 7: makes steps with 4 nodes; n2 had not saved in time: 12 steps (30 s of work) are made again"
    )
    change = world.run.events[-1]
    assert (change.again, change.again_s, change.unsaved) == (12, 30.0, frozenset({n("n2")}))


def test_saves_that_take_longer_than_the_grace_are_told_once_and_replicas_have_a_longer_notice() -> None:
    world = grown()
    for _ in range(2):
        world.word = replace(world.word, saved_s=40.0)
        world.warn(world.replicas()[-1].id)
        world.go(40)
    assert len([event for event in world.events if event.kind == "elastic.slow_save"]) == 1
    assert world.submitted[-1].grace_s == 60


def test_a_run_says_the_nodes_that_train_and_not_those_that_are_still_to_begin() -> None:
    world = ElasticWorld(saves_s=5.0, forms_s=5.0)
    said = dict[str, str]()
    for _ in range(40):
        world.step()
        line = run_lines(world.run, QUICK, world.now)[0]
        said[world.run.phase.value] = line.split(" (sizes")[0]
    assert said["draining"] == "Elastic run 7 has 2 nodes and goes to 5"
    assert said["reforming"] == "Elastic run 7 forms with 5 nodes"
    assert said["running"] == "Elastic run 7 has 5 nodes"
    assert run_lines(replace(world.run, phase=RunPhase.WAITING, members=frozenset()), QUICK, world.now)[0].startswith(
        "Elastic run 7 forms with 2 nodes, its base (sizes"
    )


def test_nodes_of_its_replicas_count_as_free_for_a_run_whose_base_lost_one() -> None:
    """They end with it: nothing says that too few others are free."""
    world = grown(nodes=5)
    job = world.jobs()[RUN]
    draft = Draft(world.picture.seen, world.picture.want, world.picture.memory, world.now)
    memory = JobMemory(id=RUN, uid=1000, mode=ResumeMode.parse("1"), opted_at=0.0, nodes=job.nodes)
    lost = frozenset(sorted(job.nodes)[:1])
    assert draft.overview.free_among(draft.overview.nodes) == set(), "no other node is idle"
    assert not is_short_without(lost, job, memory, draft)
    alone = replace(job, id=JobId(99))
    assert is_short_without(lost, alone, memory, draft)


@pytest.mark.parametrize("is_orphan", [False, True])
def test_a_user_who_submits_hundreds_of_replicas_by_himself_has_them_ended_a_few_in_a_turn(*, is_orphan: bool) -> None:
    """Each is a command of its own: the answers to other users' shims would wait for all of them."""
    world = grown()
    base = world.picture.seen.jobs[RUN]
    waiting = replace(base, state=JobState.PENDING, nodes=frozenset(), batch_host=None, started=None, submitted=0.0)
    run = JobId(99) if is_orphan else RUN
    theirs = {
        JobId(1000 + number): replace(waiting, id=JobId(1000 + number), comment=replica_comment(run, f"x{number}"))
        for number in range(200)
    }
    world.picture = world.picture.see(jobs={**world.picture.seen.jobs, **theirs})
    ended = list[int]()
    for _ in range(40):
        plan = world.picture.plan()
        gone = {each.job for each in plan.actions if isinstance(each, CancelReplica)}
        assert len(gone) <= AT_ONCE
        ended += gone
        left = {id: job for id, job in world.picture.seen.jobs.items() if id not in gone}
        world.picture = replace(world.picture, memory=plan.memory).see(jobs=left).after(5.0)
    assert set(theirs) <= set(ended)
