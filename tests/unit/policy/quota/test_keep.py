"""What a plan does for quotas: limits by difference, who borrows, and with which QOS."""

from dataclasses import replace

import pytest

from steward.model.accounting import Association, Capabilities
from steward.model.action import MarkJob, MoveJob, RequeueJob, SetNodeCount, SetQos, SetTeam, SignalJob
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.quota import PriorityClass, QuotaStatus, SchedulerConfig, Strategy
from steward.workflows.attention import is_busy
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, MARKS, WEAK, a_picture, a_quota, tres
from tests.builders.quota_site import a_site, borrowed_and_wanted_back, done, own, reserved, runs, settled, waits
from tests.builders.want import but


def caps(picture: Picture, name: str) -> int | None:
    assert picture.seen.accounting is not None
    return picture.seen.accounting.qos[name].limits.get("gres/gpu:l4")


def test_a_site_without_quotas_sees_nothing_of_them() -> None:
    picture = runs(a_picture(), 1, "a", 4)
    assert picture.plan().actions == ()


def test_quotas_become_qos_and_a_ceiling_and_then_all_is_quiet() -> None:
    picture = a_site()
    assert picture.seen.accounting is not None
    qos = picture.seen.accounting.qos
    assert (caps(picture, "stw-a-g"), caps(picture, "stw-a-b")) == (4, 0)
    assert qos["stw-a-g"].preempts == {"stw-b-b"}
    assert qos["stw-a-b"].priority < qos["stw-a-g"].priority
    team = picture.seen.accounting.of_account("a")
    assert team is not None
    assert (team.default_qos, team.qos, team.limits["gres/gpu:l4"]) == (
        "stw-a-g",
        frozenset({"stw-a-g", "stw-a-b"}),
        104,
    )
    assert {quota.status for quota in picture.memory.quotas.values()} == {QuotaStatus.CREATED}


def test_an_account_that_is_missing_is_told_and_not_made() -> None:
    picture = a_picture(own("a", 4))
    accounting = picture.seen.accounting
    assert accounting is not None
    picture, actions = done(picture.see(accounting=replace(accounting, accounts={}, associations=())))
    assert not any(isinstance(action, SetTeam) for action in actions)
    found = picture.memory.quotas["q-a"]
    assert (found.status, found.failure[:22]) == (QuotaStatus.CREATE_FAILED, "Slurm has no account a")


def test_an_account_that_was_made_a_moment_ago_and_is_not_seen_yet_alarms_nobody() -> None:
    early = a_picture(own("a", 4, status=QuotaStatus.CREATING))
    accounting = early.seen.accounting
    assert accounting is not None
    plan = early.see(accounting=replace(accounting, accounts={}, associations=())).plan()
    assert [event.kind for event in plan.events if event.kind == "quota.trouble"] == []


def test_an_account_that_somebody_deleted_is_told_once_and_comes_back_with_all_that_is_its_own() -> None:
    site = a_site()
    before = site.seen.accounting
    assert before is not None
    others = tuple(each for each in before.associations if each.account != "a")
    gone = site.see(accounting=replace(before, accounts={"b": before.accounts["b"]}, associations=others))
    plan = gone.plan()
    text = "quota a: Slurm has no account a: `steward quota setup --apply` makes it"
    assert [each.text for each in plan.events if each.kind == "quota.trouble"] == [text]
    assert replace(gone, memory=plan.memory).after(1.0).plan().events == ()
    bare = (*others, Association(account="a", parent="root"))
    accounting = replace(before, associations=bare)
    back = settled(replace(gone, memory=plan.memory).see(accounting=accounting).after(20)).seen.accounting
    assert back is not None
    assert back.of_account("a") == before.of_account("a")


def test_a_user_with_a_list_of_qos_of_his_own_is_named_with_the_command_and_nobody_else_waits_for_him() -> None:
    """Slurm makes no QOS an account's default that one of its users may not use, and says so of the whole command."""
    site = a_site()
    before = site.seen.accounting
    assert before is not None
    names = frozenset({"stw-a-g", "stw-a-b"})
    others = tuple(each for each in before.associations if each.account != "a")
    fresh = Association(account="a", parent="root", qos=names)
    ann, bob = (Association(account="a", user=user, qos=names) for user in ("ann", "bob"))
    quota = replace(site.memory.quotas["q-a"], status=QuotaStatus.CREATING)
    memory = replace(site.memory, quotas={**site.memory.quotas, "q-a": quota})

    def seen(bobs: Association) -> Picture:
        accounting = replace(before, associations=(*others, fresh, ann, bobs))
        return replace(site, memory=memory).see(accounting=accounting).after(20)

    picture, actions = done(seen(replace(bob, qos=frozenset({"normal"}))))
    assert [(each.caps, each.default_qos) for each in actions if isinstance(each, SetTeam)] == [
        ((("gres/gpu", 104), ("gres/gpu:l4", 104)), None)
    ]
    found = picture.memory.quotas["q-a"]
    assert found.status is QuotaStatus.CREATE_FAILED
    assert "sacctmgr modify user where name=bob account=a set qos+=stw-a-g,stw-a-b" in found.failure
    assert settled(seen(bob)).memory.quotas["q-a"].status is QuotaStatus.CREATED


def test_where_slurm_enforces_nothing_nothing_is_half_set_up() -> None:
    picture = a_picture(own("a", 4))
    accounting = picture.seen.accounting
    assert accounting is not None
    picture, actions = done(picture.see(accounting=replace(accounting, enforce=frozenset({"associations"}))))
    assert actions == []
    assert "AccountingStorageEnforce" in picture.memory.quotas["q-a"].failure


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK])
def test_a_waiting_job_that_its_user_gave_to_another_team_has_a_qos_of_that_team(can: Capabilities) -> None:
    """Slurm leaves it in the one that it had, and lets it wait for ever (InvalidQOS)."""
    picture = waits(a_site(can), 1, "b", 2, qos="stw-a-g", reason="InvalidQOS")
    _, actions = done(picture)
    assert [(each.job, each.qos) for each in actions if isinstance(each, MoveJob)] == [(1, ("stw-b-g",))]
    astray = waits(a_site(can), 1, "b", 2, qos="stw-b-g", reason="InvalidQOS")
    assert done(astray)[1] == []  # its own QOS, which Slurm refuses it for a reason of its own


@pytest.mark.parametrize(("can", "qos"), [(LISTS, ("stw-a-g", "stw-a-b")), (MARKS, ("stw-a-b",)), (WEAK, ("stw-a-b",))])
def test_a_job_beyond_its_quota_borrows_what_is_idle(can: Capabilities, qos: tuple[str, ...]) -> None:
    picture = waits(runs(a_site(can), 1, "a", 4), 2, "a", 2)
    picture, actions = done(picture)
    assert [action.qos for action in actions if isinstance(action, MoveJob)] == [qos]
    assert caps(picture, "stw-a-b") == 2
    assert done(picture)[1] == []


def test_what_others_do_not_lend_is_not_borrowed() -> None:
    site = a_site(LISTS, own("a", 4), own("b", 4, strategy=Strategy.DONT_LEND))
    picture = waits(runs(site, 1, "a", 4), 2, "a", 2)
    assert done(picture)[1] == []


def test_the_limit_for_borrowing_follows_what_runs() -> None:
    picture = settled(waits(runs(a_site(), 1, "a", 4), 2, "a", 2))
    picture = settled(runs(picture, 2, "a", 2, "b", "n2"))
    assert caps(picture, "stw-a-b") == 2
    ended = picture.change_job(2, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    assert caps(settled(ended), "stw-a-b") == 0


@pytest.mark.parametrize("cpus", [1, 24, 40])
def test_what_no_quota_is_about_blocks_no_reclaim(cpus: int) -> None:
    """The owner owns GPUs only: how many CPUs its job wants beside them is between it and the nodes."""
    picture = borrowed_and_wanted_back(WEAK).change_job(4, requested=tres(2, cpus, 8))
    _, actions = done(picture)
    assert [action.job for action in actions if isinstance(action, SignalJob)] == [3]


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK])
def test_what_a_job_that_is_evicted_frees_is_not_for_the_next_borrower(can: Capabilities) -> None:
    """The limit is lowered in the turn that chooses it, before anything is asked of the job."""
    picture, actions = done(borrowed_and_wanted_back(can))
    assert caps(picture, "stw-a-b") == 2
    first = next(at for at, each in enumerate(actions) if isinstance(each, SetQos) and each.qos == "stw-a-b")
    assert not any(isinstance(each, SignalJob | RequeueJob) for each in actions[:first])


def test_a_borrowed_job_that_the_quota_covers_by_now_is_spared() -> None:
    picture = settled(runs(a_site(), 2, "a", 2, "b"))
    job = picture.seen.jobs[JobId(2)]
    assert job.priority > LISTS.exempt_priority
    borrows = runs(picture, 1, "a", 4, "g", "n2", started=1.0)
    after = settled(borrows)
    assert after.seen.jobs[JobId(2)].priority < LISTS.exempt_priority
    assert JobId(2) not in after.memory.quota_jobs


def test_a_mark_goes_when_its_job_waits_again() -> None:
    picture = settled(runs(a_site(), 2, "a", 2, "b"))
    picture = picture.requeued(2, requested=tres(2), priority=picture.seen.jobs[JobId(2)].priority)
    assert settled(picture).seen.jobs[JobId(2)].priority < LISTS.exempt_priority


def test_a_higher_class_of_the_same_team_goes_before() -> None:
    site = a_site()
    scheduler = SchedulerConfig(classes=(PriorityClass(name="high", weight=90), PriorityClass(name="low", weight=10)))
    site = replace(site, memory=replace(site.memory, scheduler=scheduler))
    for id, team, node in ((1, "a", "n1"), (2, "b", "n2")):
        site = runs(site, id, team, 4, on=node, comment="priority-class=low")
    picture, actions = done(waits(settled(site), 3, "a", 4, comment="x priority-class=high"))
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [1]
    assert picture.memory.quota_jobs[JobId(1)].evictions[-1].cause.value == "in_team"


@pytest.mark.parametrize(("below", "evicted"), [(None, set()), (10, set()), (50, {2})])
def test_a_borrower_of_a_low_class_goes_for_a_higher_class_of_another_team_where_the_site_says_so(
    below: int | None, evicted: set[int]
) -> None:
    scheduler = SchedulerConfig(classes=(PriorityClass(name="high", weight=90), PriorityClass(name="low", weight=10)))
    site = a_site(LISTS, own("a", 4), own("b", 4), own("c", 4), machines=3)
    site = replace(site, memory=replace(site.memory, scheduler=scheduler))
    site = replace(site, want=replace(site.want, quota=but(site.want.quota, borrow_priority=below)))
    site = runs(runs(site, 1, "a", 4, on="n1"), 2, "a", 4, "b", on="n2", comment="priority-class=low")
    site = runs(site, 3, "b", 4, on="n3", comment="priority-class=high")
    picture, _ = done(waits(settled(site), 4, "b", 4, comment="priority-class=high"))
    chosen = {id: job.evictions[-1].cause.value for id, job in picture.memory.quota_jobs.items() if job.evictions}
    assert chosen == dict.fromkeys(evicted, "priority")


def test_a_priority_class_that_the_site_does_not_have_is_told_once_for_each_user() -> None:
    scheduler = SchedulerConfig(classes=(PriorityClass(name="high", weight=90), PriorityClass(name="low", weight=10)))
    site = a_site()
    site = replace(site, memory=replace(site.memory, scheduler=scheduler))
    site = runs(runs(site, 1, "a", 1, comment="priority-class=hihg"), 2, "a", 1, comment="priority-class=high")
    site = waits(site, 3, "a", 1, comment="x, priority-class=Low")
    site = waits(waits(site, 4, "a", 1, comment="priority-class=max", user_id=4711), 5, "a", 1, comment="no class")

    def told(picture: Picture) -> list[tuple[JobId | None, str]]:
        events = (each for each in picture.plan().events if each.kind == "quota.unknown_class")
        return [(each.job, each.text) for each in events]

    found = told(site)
    assert sorted((job or 0) for job, _ in found) == [3, 4]
    words = "priority class max is none of this site's (high, low): it counts as the lowest"
    assert (JobId(4), f"job 4: its {words}") in found
    assert told(site.then(60.0)) == []


def test_a_limit_that_somebody_set_by_hand_is_obeyed_and_told() -> None:
    picture = a_site()
    accounting = picture.seen.accounting
    assert accounting is not None
    qos = {**accounting.qos, "stw-a-g": replace(accounting.qos["stw-a-g"], limits={"gres/gpu": 1, "gres/gpu:l4": 1})}
    plan = picture.see(accounting=replace(accounting, qos=qos)).plan()
    assert not any(isinstance(action, SetQos) for action in plan.actions)
    assert {event.kind for event in plan.events} == {"quota.by_hand"}


def test_without_slurmdbd_limits_stand_still() -> None:
    picture = waits(runs(a_site(), 1, "a", 4), 2, "a", 2)
    accounting = picture.seen.accounting
    assert accounting is not None
    plan = picture.see(accounting=replace(accounting, reachable=False)).plan()
    assert {type(action) for action in plan.actions} <= {MoveJob}
    assert "quota.frozen" in {event.kind for event in plan.events}


def test_a_deleted_quota_is_closed_before_its_qos_go() -> None:
    picture = waits(runs(a_site(), 1, "a", 2), 2, "a", 4)
    quotas = {**picture.memory.quotas, "q-a": replace(picture.memory.quotas["q-a"], status=QuotaStatus.DELETING)}
    picture = settled(replace(picture, memory=replace(picture.memory, quotas=quotas)))
    assert picture.seen.accounting is not None
    team = picture.seen.accounting.of_account("a")
    assert team is not None
    unowned = {"gres/gpu": 4, "gres/gpu:l4": 4}  # it is an account without a quota now
    assert (team.qos, dict(team.limits), team.default_qos) == (frozenset({"normal"}), unowned, "")
    assert picture.seen.jobs[JobId(2)].qos == "normal"
    assert "stw-a-g" in picture.seen.accounting.qos
    picture = settled(picture.change_job(1, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now))
    assert picture.seen.accounting is not None
    assert {name for name in picture.seen.accounting.qos if "-a-" in name} == set()
    assert "q-a" not in picture.memory.quotas


def test_a_job_of_several_sizes_gets_the_largest_that_fits() -> None:
    site = a_site(LISTS, own("a", 8), own("b", 8), machines=4)
    site = runs(runs(site, 1, "b", 4, on="n1"), 2, "b", 4, on="n2")
    _, actions = done(waits(site, 3, "a", 4, most_nodes=4))
    found = [(each.least, each.most) for each in actions if isinstance(each, SetNodeCount)]
    assert found == [(2, 2)]


def test_a_node_that_takes_no_job_is_lent_to_nobody() -> None:
    picture = waits(a_site(), 1, "b", 2).drained("n2", "somebody's")
    plan = waits(picture, 2, "a", 4).plan()
    moved = [action.job for action in plan.actions if isinstance(action, MoveJob)]
    assert moved == []


def test_what_is_not_lent_is_not_given_away_for_nodes_that_a_reservation_has() -> None:
    site = a_site(LISTS, a_quota("a", gpus=4, strategy=Strategy.DONT_LEND), own("b", 0), own("c", 4))
    _, actions = done(waits(reserved(site, "n2"), 9, "b", 4, reason="Resources"))
    assert not any(isinstance(each, MoveJob) for each in actions)


def test_a_job_may_borrow_for_the_nodes_of_its_reservation_while_all_others_are_in_use() -> None:
    site = settled(runs(a_site(LISTS, own("a", 0), own("b", 4), own("c", 4)), 1, "c", 4, on="n1"))
    picture = waits(reserved(site, "n2"), 8, "a", 4, reason="Resources")
    picture = waits(picture, 9, "a", 4, reason="Resources", reservation="course")
    _, actions = done(picture)
    assert [each.job for each in actions if isinstance(each, MoveJob)] == [9]


def test_machines_that_are_not_lent_stay_free_when_others_break() -> None:
    """Three teams on two machines, of which one breaks: what is left is all that the first team owns."""
    closed = own("closed", 4, strategy=Strategy.DONT_LEND)
    site = a_site(LISTS, closed, own("lender", 4), own("c", 0), machines=2)
    picture = waits(site.drained("n2", "somebody's"), 1, "c", 2)
    assert not any(isinstance(action, MoveJob) for action in done(picture)[1])


def test_machines_that_are_not_lent_stay_free_when_jobs_of_no_team_have_the_others() -> None:
    closed = own("closed", 4, strategy=Strategy.DONT_LEND)
    site = a_site(LISTS, closed, own("lender", 4), own("c", 0), machines=2)
    picture = waits(runs(site, 9, "nobody", 4, on="n2", qos="normal"), 1, "c", 2)
    assert not any(isinstance(action, MoveJob) for action in done(picture)[1])


@pytest.mark.parametrize("can", [LISTS, MARKS])
def test_parts_of_a_heterogeneous_job_that_borrow_have_one_qos(can: Capabilities) -> None:
    """Slurm starts all parts at once, and does not look then which QOS of a list it had found to have room."""
    picture = runs(a_site(can), 1, "a", 3)
    listed = "stw-a-g,stw-a-b" if can.qos_lists else "stw-a-g"
    for id in (5, 6):
        picture = waits(picture, id, "a", 2, het_job_id=JobId(5), qos=listed)
    picture, actions = done(picture)
    assert [(each.job, each.qos) for each in actions if isinstance(each, MoveJob)] == [
        (5, ("stw-a-b",)),
        (6, ("stw-a-b",)),
    ]
    picture = picture.change_job(1, state=JobState.COMPLETED, nodes=frozenset())
    picture, actions = done(picture.after(60))
    assert {each.qos for each in actions if isinstance(each, MoveJob)} == {("stw-a-g",)}


@pytest.mark.parametrize("can", [LISTS, MARKS])
def test_a_waiting_job_that_names_two_partitions_has_one_qos(can: Capabilities) -> None:
    """Slurm keeps a priority for each pair of partition and QOS; a longer list of QOS does not enlarge that array, and
    slurmctld writes beyond its end."""
    picture = waits(runs(a_site(can), 1, "a", 3), 5, "a", 2, partition="main,second")
    picture, actions = done(picture)
    assert [each.qos for each in actions if isinstance(each, MoveJob)] == [("stw-a-b",)]
    picture = picture.change_job(1, state=JobState.COMPLETED, nodes=frozenset())
    picture, actions = done(picture.after(60))
    assert [each.qos for each in actions if isinstance(each, MoveJob)] == [("stw-a-g",)]


def test_more_marks_than_one_turn_sets_are_all_set_in_time() -> None:
    picture = a_site(LISTS, own("a", 80), own("b", 4), machines=20)
    for id in range(1, 71):
        picture = runs(picture, id, "a", 1, "b", f"n{1 + id // 4}", started=float(id))
    picture, actions = done(picture)
    assert sum(isinstance(action, MarkJob) for action in actions) == 50
    picture = settled(picture)
    assert all(picture.seen.jobs[JobId(id)].priority > LISTS.exempt_priority for id in range(1, 71))


@pytest.mark.parametrize("priority", [500, LISTS.exempt_priority + 500])
def test_a_priority_that_a_person_set_on_a_marked_job_stays(priority: int) -> None:
    picture = settled(runs(a_site(), 2, "a", 2, "b"))
    picture, _ = done(picture)
    picture = picture.change_job(2, priority=priority)
    picture, actions = done(picture.after(10))
    assert actions == []
    assert settled(runs(picture, 1, "a", 4, "g", "n2", started=1.0)).seen.jobs[JobId(2)].priority == priority


def test_a_mark_that_slurm_did_not_take_is_set_again() -> None:
    picture = runs(a_site(), 2, "a", 2, "b")
    lost = picture.then()
    again = lost.after(6).plan().actions
    assert sum(isinstance(action, MarkJob) for action in again) == 1


@pytest.mark.parametrize(("can", "is_watched"), [(WEAK, True), (LISTS, False)])
def test_where_only_steward_takes_back_what_is_lent_it_is_looked_at_as_often_as_a_repair(
    can: Capabilities, is_watched: bool
) -> None:
    picture = a_site(can)
    assert not is_busy(picture.memory, picture.now)
    lent = settled(runs(runs(picture, 1, "a", 4), 2, "a", 2, "b", "n2"))
    assert is_busy(lent.memory, lent.now) is is_watched
    asked, _ = done(waits(lent, 3, "b", 4))
    assert is_busy(asked.memory, asked.now), "a job is to be evicted"


@pytest.mark.parametrize("end", ["g", "b"])
def test_jobs_that_clean_up_raise_no_limit_because_slurm_counts_them_no_longer(end: str) -> None:
    """What they have on nodes is not for others, and their team may not start as much once more."""
    busy = settled(runs(runs(a_site(WEAK), 1, "a", 4), 2, "a", 2, "b", "n2"))
    id, qos = (1, "stw-a-g") if end == "g" else (2, "stw-a-b")
    over = {"state": JobState.CANCELLED, "flags": frozenset({"COMPLETING"})}
    before = caps(busy, qos)
    picture = settled(busy.change_job(id, **over))
    assert (before, caps(picture, qos)) == ((4, 2) if end == "g" else (2, 0))
