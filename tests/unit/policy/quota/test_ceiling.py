"""The ceiling of a team whose account has others' below it, and the QOS of a team that may borrow no more."""

from dataclasses import replace

import pytest

from steward.model.accounting import Accounting, Capabilities
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.quota import Share, Strategy
from tests.builders.picture import Picture
from tests.builders.quota import G6, LISTS, MARKS, WEAK, a_picture, a_quota
from tests.builders.quota_site import a_site, counted_by_slurm, done, own, runs, settled, waits


def known(picture: Picture) -> Accounting:
    assert picture.seen.accounting is not None
    return picture.seen.accounting


def below(picture: Picture, **parents: str) -> Picture:
    """Accounts with the accounts above them."""
    every = (replace(each, parent=parents.get(each.account, "root")) for each in known(picture).associations)
    return settled(picture.see(accounting=replace(known(picture), associations=tuple(every))))


def ceiling(picture: Picture, account: str) -> dict[str, int]:
    found = known(picture).of_account(account)
    assert found is not None
    return dict(found.limits)


def test_the_ceiling_of_an_account_has_room_for_the_teams_below_it() -> None:
    """Slurm counts the jobs of an account below in the limit of the one above."""
    quotas = [a_quota("lab", gpus=4), a_quota("vision", gpus=2), a_quota("nlp", gpus=2, strategy=Strategy.LEND)]
    picture = below(a_picture(*quotas), vision="lab", nlp="vision")
    assert {name: ceiling(picture, name)["gres/gpu"] for name in ("lab", "vision", "nlp")} == {
        "lab": 6 + 3 + 2,
        "vision": 3 + 2,
        "nlp": 2,
    }


def test_an_account_has_no_ceiling_of_what_a_team_below_it_may_have_without_bound() -> None:
    with_cpus = a_quota("lab", Share(machine_type=G6.name, accelerators=4, vcpu=48.0), borrow_percent=0)
    picture = below(a_picture(with_cpus, a_quota("vision", gpus=2, borrow_percent=0)), vision="lab")
    assert ceiling(picture, "lab") == {"gres/gpu": 6, "gres/gpu:l4": 6}
    assert known(picture).qos["stw-lab-g"].limits["cpu"] == 48


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK], ids=["lists", "marks", "weak"])
def test_jobs_that_start_between_two_turns_do_not_take_a_team_above_its_ceiling(can: Capabilities) -> None:
    """The limits of a QOS take the place of the account's: what is granted to a job that borrows is not open to an own
    one, too. Of its ceiling of three team a has one, and a job of two waits to borrow."""
    most = (Share(machine_type=G6.name, accelerators=1),)
    site = runs(a_site(can, own("a", 2, borrow_absolute=most), own("b", 6)), 1, "a", 1)
    site, _ = done(waits(settled(site), 2, "a", 2))
    limits = {name: known(site).qos[name].limits["gres/gpu"] for name in ("stw-a-g", "stw-a-b")}
    assert limits == {"stw-a-g": 1, "stw-a-b": 2}
    site, _ = done(waits(site, 3, "a", 1))
    assert {name: known(site).qos[name].limits["gres/gpu"] for name in limits} == {"stw-a-g": 2, "stw-a-b": 0}


def no_more_loans(can: Capabilities) -> Picture:
    """Team a runs a borrowed job and has another waiting in `b`; then its quota says that it only lends."""
    site = settled(runs(runs(a_site(can, own("a", 2), own("b", 6)), 1, "a", 2), 2, "a", 4, "b", "n2"))
    site = waits(site, 3, "a", 1, qos="stw-a-g,stw-a-b" if can is LISTS else "stw-a-b")
    lends = replace(site.memory.quotas["q-a"], strategy=Strategy.LEND)
    return settled(replace(site, memory=replace(site.memory, quotas={**site.memory.quotas, "q-a": lends})))


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK], ids=["lists", "marks", "weak"])
def test_who_may_borrow_no_more_is_in_reach_of_owners_and_of_slurm_until_the_last_such_job_is_gone(
    can: Capabilities,
) -> None:
    picture = no_more_loans(can)
    assert known(picture).qos["stw-b-g"].preempts == (frozenset({"stw-a-b"}) if can.preempts else frozenset())
    team = known(picture).of_account("a")
    assert team is not None
    assert team.qos == {"stw-a-g", "stw-a-b"}, "without it Slurm refuses the job that waits there"
    assert known(picture).qos["stw-a-b"].limits["gres/gpu"] == 4
    over = {"state": JobState.COMPLETED, "nodes": frozenset(), "ended": picture.now}
    picture = settled(picture.change_job(2, **over))
    assert known(picture).qos["stw-a-b"].limits["gres/gpu"] == 0, "nothing new is borrowed"
    picture = settled(picture.change_job(3, **over))
    team = known(picture).of_account("a")
    assert team is not None
    assert team.qos == {"stw-a-g"}


@pytest.mark.parametrize("can", [MARKS, WEAK], ids=["marks", "weak"])
def test_one_that_waits_in_b_comes_back_to_its_own_quota(can: Capabilities) -> None:
    picture = no_more_loans(can)
    over = {"state": JobState.COMPLETED, "nodes": frozenset(), "ended": picture.now}
    picture, _ = done(picture.change_job(2, **over).change_job(1, **over))
    assert picture.seen.jobs[JobId(3)].qos == "stw-a-g"


@pytest.mark.parametrize(
    ("miscounts", "since_s", "used", "limit"),
    [(True, 60.0, 1, 1), (True, 60.0, 4, 4), (False, 60.0, 1, 4), (True, 0.0, 1, 4)],
    ids=["too little", "right", "another Slurm", "just begun"],
)
def test_a_limit_is_lowered_by_what_slurm_counts_too_little_in_it(
    miscounts: bool, since_s: float, used: int, limit: int
) -> None:
    """Slurm 26.05 takes parts of heterogeneous jobs out of the use at their submission; four GPUs are in use here."""
    site = a_site(replace(LISTS, miscounts_parts=miscounts))
    site = runs(site, 1, "a", 4, started=site.now - since_s)
    counted = known(site)
    qos = {**counted.qos, "stw-a-g": replace(counted.qos["stw-a-g"], used={"gres/gpu": used, "gres/gpu:l4": used})}
    site, _ = done(site.see(accounting=replace(counted, qos=qos, at=site.now)))
    assert known(site).qos["stw-a-g"].limits["gres/gpu"] == limit


@pytest.mark.parametrize(("used", "limit"), [(1, 4 + 4 - 3), (4, 4 + 4)], ids=["too little", "right"])
def test_a_ceiling_is_lowered_by_what_slurm_counts_too_little_in_the_account(used: int, limit: int) -> None:
    """It is what holds jobs in the site's own QOS."""
    four = (Share(machine_type=G6.name, accelerators=4),)
    site = a_site(replace(LISTS, miscounts_parts=True), own("a", 4, borrow_absolute=four), own("b", 4))
    site = runs(site, 1, "a", 4, started=site.now - 60.0, qos="normal")
    site, _ = done(counted_by_slurm(site, "a", used))
    assert ceiling(site, "a")["gres/gpu"] == limit
