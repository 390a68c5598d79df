"""A job that stands still is found, looked at, and resumed only as far as evidence or its own words go."""

from dataclasses import replace

import pytest

from steward.model.action import CheckNow, RequeueJob
from steward.model.agent_action import CollectStacks
from steward.model.ask import AskKind
from steward.model.events import Event
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.job_report import Progress
from steward.model.job_sight import Doing, LogState, LogWord, SlowRank
from steward.model.resume import Attempt, Decision, OddRanks
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumeDefault
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.blame import culprits
from steward.policy.job.hang import OTHERS_S
from steward.views.explain import explain_job
from tests.builders.picture import T0, Picture, a_cluster, n, names
from tests.builders.sights import a_sight

J7 = JobId(7)
ANY = "any:3,age=0"


def a_job(mode: str = ANY) -> Picture:
    """It runs on n1 and n2, and Steward knows of it."""
    job = a_cluster().job(7, on=("n1", "n2"), started=T0 - 7200.0, submitted=T0 - 7200.0)
    return job.opted_in(7, ResumeMode.parse(mode)).then()


def stepping(picture: Picture, step: int = 100, *, ago_s: float = 0.0, id: int = 7, **fields: object) -> Picture:
    """n1 tells of the job's last step."""
    told = Progress(
        job=JobId(id), restart=0, node=n("n1"), step=step, stepped=picture.now - ago_s, pace_s=2.0, at=picture.now
    )
    return picture.agent("n1", progress=(replace(told, **fields),))  # type: ignore[arg-type]


def stuck(mode: str = ANY) -> Picture:
    return stepping(a_job(mode), ago_s=301.0)


def answered(picture: Picture) -> Picture:
    """Its nodes have told what the tasks are doing, and their checks are fresh."""
    for node in ("n1", "n2"):
        picture = picture.agent(node, bundles=("7-0-100",), checked_at=picture.now)
    return picture


def kinds(picture: Picture) -> list[str]:
    return [type(action).__name__ for action in picture.actions()]


def events(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def event(picture: Picture, kind: str) -> Event:
    (found,) = [event for event in picture.plan().events if event.kind == kind]
    return found


def test_a_job_that_goes_on_is_left_alone() -> None:
    picture = stepping(a_job(), ago_s=299.0)
    assert kinds(picture) == []
    assert picture.plan().wake_at == picture.now + 1.0


def test_a_job_that_stands_still_is_looked_at_first() -> None:
    picture = stuck("any:3,age=0,stacks=USR1")
    orders = [action for action in picture.plan().actions if isinstance(action, CollectStacks)]
    assert [(o.job, sorted(o.nodes), o.name, o.signal) for o in orders] == [(J7, ["n1", "n2"], "7-0-100", "USR1")]
    assert [action.nodes for action in picture.actions() if isinstance(action, CheckNow)] == [{"n1", "n2"}]
    assert "no step since step 100 for more than 300 s" in event(picture, "job.hang").text
    assert kinds(picture.then(1.0)) == []


def test_no_signal_is_named_where_the_job_named_none() -> None:
    (order,) = [action for action in stuck().plan().actions if isinstance(action, CollectStacks)]
    assert order.signal == ""


def test_with_its_stacks_kept_it_is_resumed_as_it_asked_for() -> None:
    picture = answered(stuck().then(3.0))
    (action,) = [action for action in picture.actions() if isinstance(action, RequeueJob)]
    assert action.job == 7
    assert "no step since step 100" in action.why.evidence[0]


def test_stacks_that_do_not_come_are_not_waited_for_for_ever() -> None:
    picture = stuck().then(19.0)
    assert "RequeueJob" not in kinds(picture)
    assert "RequeueJob" in kinds(picture.then(1.5))


def test_without_evidence_a_job_of_mode_1_is_told_of_and_left_running() -> None:
    picture = answered(stuck("1").then(3.0))
    assert "RequeueJob" not in kinds(picture)
    assert "left running" in event(picture, "job.hang_left").text
    assert "bundles/7-0-100" in event(picture, "job.hang_left").text


def test_with_a_fault_on_its_node_it_is_resumed_without_that_node() -> None:
    picture = answered(stuck("1").then(3.0)).failing("n2")
    (action,) = [action for action in picture.actions() if isinstance(action, RequeueJob)]
    assert action.exclude == {"n2"}
    assert picture.plan().memory.jobs[J7].attempts[-1].culprits == {"n2"}


def test_it_is_never_decided_twice_for_one_standstill() -> None:
    picture = answered(stuck("1").then(3.0)).then(60.0)
    assert (kinds(picture), events(picture)) == ([], [])
    picture = picture.wait(3600.0)
    assert (kinds(picture), events(picture)) == ([], [])


def test_a_step_ends_it_and_another_standstill_is_another_one() -> None:
    picture = answered(stuck("1").then(3.0)).then(60.0)
    moving = stepping(picture, 101)
    assert events(moving) == ["job.hang_over"]
    again = moving.then(301.0)
    assert "job.hang" in events(again)
    assert any(isinstance(a, CollectStacks) and a.name == "7-0-101" for a in again.actions())


def test_a_step_while_its_stacks_are_awaited_ends_it() -> None:
    picture = answered(stepping(stuck().then(3.0), 101))
    assert kinds(picture) == []
    assert picture.plan().memory.jobs[J7].hang is None


def test_a_checkpoint_that_was_written_since_is_a_sign_of_life() -> None:
    assert kinds(stepping(a_job(), ago_s=400.0, checkpointed=T0 - 10.0)) == []


def test_the_limit_grows_with_the_jobs_own_pace_and_has_a_limit() -> None:
    assert kinds(stepping(a_job(), ago_s=400.0, pace_s=100.0)) == []
    assert kinds(stepping(a_job(), ago_s=3601.0, pace_s=5000.0)) != []


def test_where_the_pace_is_not_known_the_longest_limit_counts() -> None:
    assert kinds(stepping(a_job(), ago_s=3599.0, pace_s=None)) == []
    assert kinds(stepping(a_job(), ago_s=3601.0, pace_s=None)) != []


def test_the_jobs_own_words_come_first() -> None:
    assert kinds(stepping(a_job("any:1,hang=20"), ago_s=21.0)) != []
    assert kinds(stepping(a_job("any:1,hang=0"), ago_s=90_000.0)) == []
    assert kinds(stepping(a_job("any:1,hang=1").resume(hang=False), ago_s=301.0)) != []
    assert kinds(stuck().resume(hang=False)) == []


def test_a_job_that_did_not_opt_in_is_never_touched() -> None:
    assert kinds(stepping(a_cluster().job(7, on=("n1", "n2")), ago_s=90_000.0)) == []


def test_while_an_agent_is_away_nobody_knows() -> None:
    assert "CollectStacks" not in kinds(stuck().agent("n2", connected=False, lost_at=T0))
    assert "CollectStacks" not in kinds(stuck().agent("n1", late=True))


def test_what_a_former_run_told_says_nothing_of_this_one() -> None:
    assert kinds(stepping(a_job(), ago_s=400.0, restart=1)) == []


def test_a_suspended_job_does_not_stand_still() -> None:
    assert "CollectStacks" not in kinds(stuck().change_job(state=JobState.SUSPENDED))


def quiet(picture: Picture, *nodes: str, for_s: float = 1801.0) -> Picture:
    for node in nodes:
        picture = picture.agent(node, sights=(a_sight(picture, node, Doing.WAITS, for_s=for_s),))
    return picture


def test_a_job_that_uses_nothing_on_all_its_nodes_stands_still() -> None:
    assert "CollectStacks" in kinds(quiet(a_job(), "n1", "n2"))
    assert kinds(quiet(a_job(), "n1")) == []
    busy = quiet(a_job(), "n1", "n2")
    assert kinds(busy.agent("n2", sights=(a_sight(busy, "n2", Doing.BUSY),))) == []


def test_the_head_counts_on_while_a_quiet_job_tells_nothing_new() -> None:
    picture = quiet(a_job(), "n1", "n2", for_s=30.0)
    assert kinds(picture.after(1769.0)) == []
    assert "CollectStacks" in kinds(picture.after(1771.0))


def test_a_quiet_job_is_resumed_without_a_fault_only_where_it_asked_for_that() -> None:
    asked, not_asked = (quiet(a_job(mode), "n1", "n2").then(21.0) for mode in ("any:3,age=0,hang=1", ANY))
    assert "RequeueJob" in kinds(asked)
    assert "RequeueJob" not in kinds(not_asked)
    assert "hang=1" in event(not_asked, "job.hang_left").text


def test_jobs_that_stop_together_have_a_cause_that_they_share() -> None:
    picture = a_cluster()
    for id, node in ((7, "n1"), (8, "n2"), (9, "n3")):
        picture = picture.job(id, on=(node,)).opted_in(id, ResumeMode.parse(ANY))
    picture = picture.then()
    for id, node in ((7, "n1"), (8, "n2"), (9, "n3")):
        told = Progress(job=JobId(id), restart=0, node=n(node), step=5, stepped=T0 - 400, pace_s=1.0, at=T0)
        picture = picture.agent(node, progress=(told,))
    picture = picture.then(21.0)
    assert "RequeueJob" not in kinds(picture)
    assert events(picture).count("job.hang_left") == 3


def test_a_restart_of_the_head_does_not_begin_anew() -> None:
    picture = stuck().then(3.0)
    again = replace(picture, seen=replace(picture.seen, agents_since=picture.now))
    assert "CollectStacks" not in kinds(again)
    assert "RequeueJob" in kinds(answered(again))


def explained(picture: Picture) -> str:
    return "\n".join(explain_job(J7, picture.seen, picture.want, picture.memory, picture.now))


def test_while_an_agent_is_away_what_was_found_and_decided_stays() -> None:
    decided = answered(stuck().then(3.0)).then(1.0)
    away = decided.agent("n2", connected=False, lost_at=decided.now)
    assert "job.hang_over" not in events(away)
    back = away.then(61.0).agent("n2", connected=True)
    assert "job.hang" not in events(back)
    assert "RequeueJob" in kinds(back)
    assert len(back.plan().memory.jobs[J7].attempts) == 1


def test_orders_that_a_killed_head_did_not_give_are_given_by_the_next_one() -> None:
    picture = stuck().then(1.0)
    forgot = replace(picture, memory=replace(picture.memory, asked={}))
    assert {"CollectStacks", "CheckNow"} <= set(kinds(forgot))


def test_a_node_that_does_not_tell_its_stacks_is_asked_again_and_no_other() -> None:
    picture = stuck().then(1.0).agent("n1", bundles=("7-0-100",), checked_at=T0 + 1.0).after(5.0)
    assert [a.nodes for a in picture.actions() if isinstance(a, CollectStacks)] == [{"n2"}]


def test_a_clock_that_is_set_forward_makes_no_standstill() -> None:
    """The nodes are asked, and the answer comes with how far the job is."""
    jumped = stepping(a_job(), ago_s=10.0).then().after(3600.0).then(2.0)
    looked = answered(jumped)
    assert "RequeueJob" not in kinds(looked)
    fresh = answered(stepping(jumped, ago_s=12.0))
    assert events(fresh) == ["job.hang_over"]
    assert kinds(fresh) == []


def test_an_agent_that_began_anew_and_forgot_the_pace_does_not_make_it_go_on() -> None:
    decided = answered(stuck().then(3.0)).then(1.0)
    again = stepping(decided.after(61.0), ago_s=400.0, pace_s=None)
    assert "job.hang_over" not in events(again)
    assert "RequeueJob" in kinds(again)


def test_a_clock_that_is_set_back_does_not_lose_the_decision() -> None:
    decided = answered(stuck().then(3.0)).then(1.0)
    mem = decided.memory.jobs[J7]
    assert mem.hang is not None
    hang = replace(mem.hang, since=mem.hang.since - 3.0)
    shifted = replace(decided, memory=replace(decided.memory, jobs={J7: replace(mem, hang=hang)}))
    assert "RequeueJob" in kinds(shifted.after(61.0))


def test_a_job_that_seems_to_have_begun_in_the_future_is_not_taken_for_a_young_one() -> None:
    """slurmctld stamped its start before the clock was set back."""
    picture = answered(stuck().then(3.0))
    assert "RequeueJob" in kinds(picture.change_job(started=picture.now + 3600.0))


def test_a_job_whose_shim_waits_for_an_answer_does_not_stand_still() -> None:
    assert "CollectStacks" not in kinds(stuck().ask())


def test_a_retried_step_has_as_long_for_its_first_step_as_one_whose_pace_is_not_known() -> None:
    why = Why(rule="resume.retry", text="the step runs again", evidence=("n2",))
    picture = stepping(a_job(), ago_s=100.0)
    retry = Attempt(decided_for="ask", decision=Decision.RETRY, why=why, at=picture.now)
    mem = replace(picture.memory.jobs[J7], attempts=(retry,))
    loading = replace(picture, memory=replace(picture.memory, jobs={J7: mem}))
    assert "CollectStacks" not in kinds(loading.after(3599.0))
    assert "CollectStacks" in kinds(loading.after(3601.0))


# What agents see ranks do, without a word of the job.

SIGHT = "1,hang=30"


def seen(
    picture: Picture, n1: Doing, n2: Doing, *, for_s: float = 61.0, ranks: int = 4, usual_s: float = 0.0
) -> Picture:
    """The ranks of n1 and n2, of which each does the same."""
    for first, (node, doing) in enumerate((("n1", n1), ("n2", n2))):
        sight = a_sight(picture, node, doing, ranks=ranks, first=first * ranks, for_s=for_s, usual_s=usual_s)
        picture = picture.agent(node, sights=(sight,))
    return picture


def looked_at(picture: Picture) -> Picture:
    mem = picture.memory.jobs[J7]
    assert mem.hang is not None
    for node in ("n1", "n2"):
        picture = picture.agent(node, bundles=(mem.hang.name,), checked_at=picture.now)
    return picture


def test_the_rank_that_is_stopped_is_named_and_its_job_runs_again_without_its_node() -> None:
    picture = seen(a_job(SIGHT), Doing.WAITS, Doing.STOPPED, ranks=1, for_s=31.0)
    text = event(picture, "job.hang").text
    assert "rank 1 of step 0 (n2, process 4001): stopped by a signal" in text
    assert "1 rank using neither CPU nor GPU" in text
    assert "a person may have stopped it" in text
    picture = looked_at(picture.then(3.0))
    (action,) = [action for action in picture.actions() if isinstance(action, RequeueJob)]
    assert (action.job, action.exclude) == (J7, names("n2"))
    (attempt,) = picture.plan().memory.jobs[J7].attempts
    assert (attempt.decision, attempt.culprits, attempt.why.rule) == (Decision.REQUEUE, names("n2"), "resume.requeue")
    assert any("n2: rank 1 of step 0" in text for text in attempt.why.evidence)


def test_the_node_of_the_odd_rank_stays_excluded_for_an_hour_though_it_is_sound() -> None:
    picture = looked_at(seen(a_job(SIGHT), Doing.WAITS, Doing.STOPPED, ranks=1, for_s=31.0).then(3.0)).then()
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    later = Draft(picture.seen, picture.want, picture.memory, picture.now + 3601.0)
    mem = picture.memory.jobs[J7]
    assert (culprits(mem, draft), culprits(mem, later)) == (names("n2"), frozenset())


def test_without_hang_in_its_words_a_job_is_told_of_and_no_ruling_follows() -> None:
    for mode in ("1", ANY, "1,hang=0"):
        picture = seen(a_job(mode), Doing.SPINS, Doing.STOPPED)
        assert kinds(picture) == []
        assert events(picture) == ([] if mode == "1,hang=0" else ["job.hang"])
    picture = seen(a_job(), Doing.SPINS, Doing.STOPPED)
    assert "left running, as it did not ask for more (hang=1" in event(picture, "job.hang").text
    assert events(picture.wait(600.0)) == []


def waits_for_n2(mode: str = "1", *, n1: Doing = Doing.SPINS, n2: Doing = Doing.WAITS) -> Picture:
    """Its ranks of n1 have waited for those of n2 for longer than usual, and it is known what they did."""
    picture = seen(a_job(mode), n1, n2, ranks=1, for_s=301.0).then(3.0)
    return looked_at(picture).then() if picture.memory.jobs[J7].hang is not None else picture


def failed(picture: Picture, after_s: float = 10.0) -> Picture:
    """Its step has ended with a fault of its own making."""
    return picture.wait(after_s).ask(AskKind.STEP, status=6).then(0.1).checked("n1", "n2").then(3.0)


def test_the_nodes_of_a_job_that_waits_for_one_of_them_are_looked_at_and_it_is_left_running() -> None:
    for mode in ("1", ANY):
        picture = seen(a_job(mode), Doing.SPINS, Doing.WAITS, ranks=1, for_s=301.0)
        assert kinds(picture) == ["CollectStacks", "CheckNow"]
        picture = looked_at(picture.then(3.0))
        assert kinds(picture) == []
        assert "if it fails of it, it starts again without n2 (hang=1" in event(picture, "job.hang_left").text
        assert "if it fails of it, it starts again without n2" in explained(picture.then())
        assert events(picture.then().wait(900.0)) == []


def test_a_job_that_waits_goes_on_only_when_a_rank_works() -> None:
    picture = waits_for_n2()
    assert events(seen(picture, Doing.SPINS, Doing.SPINS, ranks=1, for_s=400.0)) == []
    assert events(seen(picture, Doing.SPINS, Doing.WORKS, ranks=1)) == ["job.hang_over"]


def test_a_fault_that_is_found_then_brings_it_back() -> None:
    picture = seen(a_job("1"), Doing.SPINS, Doing.BLOCKED, ranks=1, for_s=301.0).then(3.0)
    (action,) = [a for a in looked_at(picture).failing("n2").actions() if isinstance(a, RequeueJob)]
    assert action.exclude == names("n2")


@pytest.mark.parametrize("n2", [Doing.WAITS, Doing.BLOCKED])
def test_a_job_that_fails_while_it_waits_for_a_node_runs_again_without_it(n2: Doing) -> None:
    picture = failed(waits_for_n2(n2=n2))
    (attempt,) = picture.memory.jobs[J7].attempts
    assert (attempt.decision, attempt.culprits, attempt.why.rule) == (Decision.REQUEUE, names("n2"), "resume.requeue")
    assert any("n2: the job stood still for 5 min: rank 1 of step 0 (n2" in text for text in attempt.why.evidence)
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    assert culprits(picture.memory.jobs[J7], draft) == names("n2")


@pytest.mark.parametrize(
    "picture",
    [
        failed(waits_for_n2(n2=Doing.STOPPED)),
        failed(waits_for_n2(n2=Doing.GONE)),
        failed(waits_for_n2("1,hang=0")),
        failed(seen(waits_for_n2(), Doing.WORKS, Doing.WORKS).then(), 150.0),
    ],
    ids=["a person stopped it", "it ended", "hang=0", "it had gone on"],
)
def test_otherwise_its_failure_is_its_own(picture: Picture) -> None:
    assert [one.why.rule for one in picture.memory.jobs[J7].attempts] == ["resume.no_evidence"]


def test_a_job_that_waits_for_another_node_in_its_next_run_has_no_node_to_blame() -> None:
    picture = waits_for_n2()
    mem = picture.memory.jobs[J7]
    assert mem.odd is not None
    before = replace(mem.odd, node=n("n1"), restart=-1, until=picture.now - 3600.0)
    again = failed(waits_for_n2_after(before))
    assert [one.why.rule for one in again.memory.jobs[J7].attempts] == ["resume.no_evidence"]
    days_ago = failed(waits_for_n2_after(replace(before, until=picture.now - 90_000.0)))
    assert [one.culprits for one in days_ago.memory.jobs[J7].attempts] == [names("n2")]


def waits_for_n2_after(before: OddRanks) -> Picture:
    picture = a_job("1")
    mem = replace(picture.memory.jobs[J7], odd=before)
    picture = replace(picture, memory=replace(picture.memory, jobs={**picture.memory.jobs, J7: mem}))
    return looked_at(seen(picture, Doing.SPINS, Doing.WAITS, ranks=1, for_s=301.0).then(3.0)).then()


def test_where_nothing_is_resumed_jobs_are_told_of_all_the_same() -> None:
    picture = seen(a_job(SIGHT).resume(enabled=False), Doing.SPINS, Doing.STOPPED)
    assert (kinds(picture), events(picture)) == ([], ["job.hang"])


def other(n1: Doing, n2: Doing, *, for_s: float = 61.0, **job: object) -> Picture:
    """A job that did not opt in, which has run for two hours."""
    picture = a_cluster().job(7, on=("n1", "n2"), **{"started": T0 - 7200.0, "submitted": T0 - 7200.0, **job}).then()
    return seen(picture, n1, n2, for_s=for_s)


def test_a_job_that_did_not_opt_in_is_told_of_once() -> None:
    picture = other(Doing.SPINS, Doing.STOPPED)
    assert kinds(picture) == []
    assert "4 ranks waiting in a kernel of its GPU" in event(picture, "job.hang").text
    assert events(picture.wait(3600.0)) == []
    assert "stopped by a signal" in explained(picture)


def test_what_each_way_of_standing_still_takes() -> None:
    for n1, n2, limit_s in (
        (Doing.SPINS, Doing.STOPPED, 60.0),
        (Doing.BUSY, Doing.STOPPED, 60.0),
        (Doing.SPINS, Doing.BLOCKED, 300.0),
        (Doing.WAITS, Doing.BLOCKED, 300.0),
        (Doing.SPINS, Doing.GONE, 300.0),
        (Doing.WAITS, Doing.GONE, 300.0),
        (Doing.SPINS, Doing.WAITS, 300.0),
        (Doing.SPINS, Doing.SPINS, 300.0),
        (Doing.WAITS, Doing.WAITS, 1800.0),
    ):
        assert events(other(n1, n2, for_s=limit_s - 1.0)) == [], (n1, n2)
        assert events(other(n1, n2, for_s=limit_s + 1.0)) == ["job.hang"], (n1, n2)
        assert other(n1, n2, for_s=limit_s - 1.0).plan().wake_at == T0 + 1.0, (n1, n2)


def test_what_may_be_work_is_never_told() -> None:
    for doing in (Doing.WORKS, Doing.UNKNOWN, Doing.BUSY):
        for beside in (Doing.SPINS, Doing.WAITS, Doing.BLOCKED, Doing.GONE):
            assert events(other(doing, beside, for_s=7000.0)) == [], (doing, beside)
    assert events(other(Doing.WORKS, Doing.STOPPED, for_s=7000.0)) == []


def test_a_jobs_own_pauses_make_it_wait_longer() -> None:
    picture = a_cluster().job(7, on=("n1", "n2"), started=T0 - 7200.0).then()
    assert events(seen(picture, Doing.SPINS, Doing.BLOCKED, for_s=899.0, usual_s=180.0)) == []
    assert events(seen(picture, Doing.SPINS, Doing.BLOCKED, for_s=901.0, usual_s=180.0)) == ["job.hang"]


def test_a_step_that_was_reported_since_means_that_it_goes_on() -> None:
    picture = stepping(seen(a_job(SIGHT), Doing.WAITS, Doing.STOPPED, for_s=100.0), ago_s=20.0)
    assert events(picture) == []
    assert "job.hang" in events(picture.after(11.0))


def test_whose_jobs_are_not_judged() -> None:
    assert events(other(Doing.SPINS, Doing.STOPPED, started=T0 - 800.0)) == [], "its start may take as long"
    assert events(other(Doing.SPINS, Doing.STOPPED, is_batch=False)) == [], "a person's own session"
    assert events(other(Doing.SPINS, Doing.STOPPED, state=JobState.SUSPENDED)) == []
    assert events(other(Doing.SPINS, Doing.STOPPED).resume(hang=False)) == []
    assert events(other(Doing.SPINS, Doing.STOPPED, partition="main").resume(hang_not_in=("main",))) == []
    assert events(other(Doing.SPINS, Doing.STOPPED).agent("n1", late=True)) == []


def test_a_job_of_one_rank_that_waits_is_told_of_only_if_it_opted_in() -> None:
    """It may be a notebook."""
    alone = a_cluster().job(7, on=("n1",), started=T0 - 7200.0, submitted=T0 - 7200.0)
    for picture, told in ((alone.then(), []), (alone.opted_in(7, ResumeMode.parse("1")).then(), ["job.hang"])):
        sight = a_sight(picture, "n1", Doing.WAITS, for_s=5000.0, step="batch")
        assert events(picture.agent("n1", sights=(sight,))) == told


def test_a_script_that_waits_for_its_steps_is_no_rank() -> None:
    picture = other(Doing.WORKS, Doing.WORKS)
    script = a_sight(picture, "n1", Doing.WAITS, for_s=7000.0, step="batch")
    assert events(picture.agent("n1", sights=(script, *picture.seen.agents[n("n1")].sights))) == []


def test_ranks_of_a_run_before_say_nothing_of_this_one() -> None:
    picture = other(Doing.SPINS, Doing.STOPPED)
    assert events(picture.change_job(started=T0 - 1000.0)) == []


def test_ranks_that_differ_on_every_node_blame_none() -> None:
    picture = a_job(SIGHT)
    for first, node in ((0, "n1"), (4, "n2")):
        sight = a_sight(picture, node, Doing.SPINS, Doing.STOPPED, ranks=2, first=first, for_s=61.0)
        picture = picture.agent(node, sights=(sight,))
    (attempt,) = looked_at(picture.then(3.0)).plan().memory.jobs[J7].attempts
    assert (attempt.decision, attempt.culprits) == (Decision.REQUEUE, frozenset())


def test_a_ruling_stands_until_a_rank_works_though_an_agent_began_anew() -> None:
    picture = looked_at(seen(a_job("1,hang=30"), Doing.SPINS, Doing.SPINS).then(3.0)).then()
    assert picture.memory.jobs[J7].hang is not None
    unknown = seen(picture, Doing.UNKNOWN, Doing.SPINS)
    assert "job.hang_over" not in events(unknown)
    assert events(seen(picture, Doing.WORKS, Doing.SPINS)) == ["job.hang_over"]


LATE = LogWord(state=LogState.LATE, rule="steps", for_s=301.0, limit_s=300.0)
WATCHED = LogWord(state=LogState.WATCHED, text="1 rule")


def ruled(picture: Picture, *words: LogWord, doing: Doing = Doing.WORKS) -> Picture:
    """Its script's output says this by its own rules, while its ranks do that."""
    sight = replace(a_sight(picture, "n1", doing, step="batch"), log=words)
    return picture.agent("n1", sights=(sight,))


def plain(**fields: object) -> Picture:
    """A job that did not opt in."""
    return a_cluster().job(7, on=("n1", "n2"), **{"started": T0 - 7200.0, **fields}).then()


def test_a_line_that_the_jobs_own_rule_waits_for_is_told_though_its_ranks_may_work() -> None:
    picture = ruled(plain(), WATCHED, LATE)
    assert kinds(picture) == []
    told = event(picture, "job.hang").text
    assert "for 5 min no line came in its output for which its own rule 'steps' allows 5 min" in told
    assert "left running" in told
    assert events(picture.then(60.0)) == []
    assert "It stands still for 5 min: no line came in its output" in explained(picture)
    assert "Its output is watched by its own rules (1 rule)." in explained(picture)


def test_the_jobs_own_rules_are_in_force_from_its_first_second_and_name_the_rank() -> None:
    late = replace(LATE, rank=3, for_s=121.0, limit_s=120.0)
    picture = ruled(plain(started=T0 - 125.0), late)
    assert "the output of rank 3 of step batch (n1)" in event(picture, "job.hang").text


def test_a_suspended_jobs_line_has_its_time_anew() -> None:
    picture = ruled(a_job("1,hang=1").change_job(state=JobState.SUSPENDED).then(), LATE)
    picture = picture.change_job(state=JobState.RUNNING).then()
    assert "job.hang" not in events(ruled(picture, replace(LATE, for_s=400.0)))
    later = picture.after(302.0)
    assert "job.hang" in events(ruled(later, replace(LATE, for_s=702.0)))


def test_it_is_acted_on_only_where_the_job_wrote_hang() -> None:
    asked, not_asked = (ruled(a_job(mode), LATE).then(21.0) for mode in ("any:3,age=0,hang=1", ANY))
    assert "RequeueJob" in kinds(ruled(asked, replace(LATE, for_s=322.0)))
    assert "RequeueJob" not in kinds(ruled(not_asked, replace(LATE, for_s=322.0)))


def test_rules_that_cannot_be_used_and_what_is_slow_or_a_fault_are_told_once() -> None:
    broken = LogWord(state=LogState.BROKEN, text="/r.json: it is no JSON")
    slow = LogWord(state=LogState.SLOW, rule="speed", rank=1, text="12 is below 100")
    fault = LogWord(state=LogState.FAULT, rule="oom")
    for word, text in (
        (broken, "its rules for its output cannot be used: /r.json: it is no JSON"),
        (slow, "by its rule 'speed' it is slow: in the output of rank 1 of step batch (n1) 12 is below 100"),
        (fault, "a line came in its output that its rule 'oom' calls a fault"),
    ):
        picture = ruled(a_job("1,hang=1"), word)
        assert event(picture, "job.rule").text == f"job 7: {text}"
        assert (kinds(picture), events(picture.then(60.0))) == ([], [])
        assert f"{text[0].upper()}{text[1:]}." in explained(picture)


def test_rules_that_are_kept_are_no_news() -> None:
    picture = ruled(plain(), WATCHED)
    assert (kinds(picture), events(picture)) == ([], [])


def alone(mode: str = "", *, by_default: bool = False, for_s: float = 5000.0) -> Picture:
    """A job of one rank that waits."""
    picture = a_cluster().job(7, on=("n1",), started=T0 - 7200.0, submitted=T0 - 7200.0)
    if by_default:
        picture = picture.resume(default=(ResumeDefault(mode=mode),))
    elif mode:
        picture = picture.opted_in(7, ResumeMode.parse(mode))
    picture = picture.then()
    sight = a_sight(picture, "n1", Doing.WAITS, for_s=for_s, step="batch")
    return picture.agent("n1", sights=(sight,))


def test_the_sites_word_that_jobs_are_resumed_does_not_make_a_notebook_hang() -> None:
    assert events(alone("1")) == ["job.hang"]
    assert events(alone("1", by_default=True)) == []
    assert events(alone("1,hang=1", by_default=True)) == ["job.hang"]
    assert "may be a notebook" in explained(alone("1", by_default=True))


def test_explain_says_when_what_is_seen_counts_as_a_hang() -> None:
    assert "It counts as a hang in 20 min." in explained(alone("1", for_s=600.0))
    assert "It counts as a hang" not in explained(alone("1", for_s=1801.0))
    assert "may be a notebook" in explained(alone(for_s=600.0))
    assert "not watched for hangs" in explained(alone("1,hang=0", for_s=600.0))


def slowed(picture: Picture, *nodes: str) -> Picture:
    """Of the two ranks on each node one is slowed down, on these."""
    for first, node in ((0, "n1"), (2, "n2")):
        slow = SlowRank(rank=first, gpu=f"GPU-{first}", for_s=600.0, why="too hot", mhz=1050, others_mhz=1900)
        sight = replace(a_sight(picture, node, Doing.WORKS, ranks=2, first=first), slow=(slow,) * (node in nodes))
        picture = picture.agent(node, sights=(sight,))
    return picture


def test_a_rank_that_hardware_slows_down_is_told_once_with_its_node_and_never_acted_on() -> None:
    picture = slowed(a_job("any:3,age=0,hang=1"), "n2")
    assert events(picture) == []
    assert picture.plan().wake_at == picture.now + OTHERS_S
    later = picture.after(OTHERS_S + 1.0)
    text = event(later, "job.slow").text
    assert "the GPU of rank 2 of step 0 (n2, GPU-2) has been slowed down by its hardware for 12 min: too hot" in text
    assert "(1050 MHz, the others on the node 1900)" in text
    assert (kinds(later), events(later.then(60.0))) == ([], [])
    assert f"T{text.removeprefix('job 7: t')}." in explained(later)


def test_where_most_ranks_are_slowed_down_none_is_slower_than_the_others() -> None:
    picture = slowed(a_job("1"), "n1", "n2")
    assert events(picture.after(OTHERS_S + 1.0)) == ["job.slow", "job.slow"]
    sights = [
        replace(view, groups=(replace(view.groups[0], ranks=1),))
        for n_ in ("n1", "n2")
        for view in picture.seen.agents[n(n_)].sights
    ]
    for sight in sights:
        picture = picture.agent(sight.node, sights=(sight,))
    assert events(picture.after(OTHERS_S + 1.0)) == []
