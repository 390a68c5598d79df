"""A quota that ends: marks go, the account that we made goes once it is empty, and nothing else of the site's does."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.accounting import ACCOUNT_MARK, Account, Association, Qos
from steward.model.action import DropQos, DropTeam, MarkJob, SetQos, SetTeam
from steward.model.agent_action import Action
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.quota import QuotaStatus
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, a_picture, written
from tests.builders.quota_site import a_site, done, own, runs, settled, waits


def deleted(picture: Picture, team: str = "a") -> Picture:
    id = f"q-{team}"
    quotas = {**picture.memory.quotas, id: replace(picture.memory.quotas[id], status=QuotaStatus.DELETING)}
    return replace(picture, memory=replace(picture.memory, quotas=quotas))


def made_by_us(picture: Picture, team: str = "a", *, users: tuple[str, ...] = ()) -> Picture:
    accounting = picture.seen.accounting
    assert accounting is not None
    accounts = {**accounting.accounts, team: Account(name=team, organization=ACCOUNT_MARK)}
    more = tuple(Association(account=team, user=user) for user in users)
    after = replace(accounting, accounts=accounts, associations=(*accounting.associations, *more))
    return picture.see(accounting=after)


def accounts(picture: Picture) -> set[str]:
    assert picture.seen.accounting is not None
    return set(picture.seen.accounting.accounts)


def test_an_account_that_we_made_goes_with_its_teams_quota() -> None:
    picture = settled(deleted(made_by_us(a_site())))
    assert accounts(picture) == {"b"}
    assert "q-a" not in picture.memory.quotas


@pytest.mark.parametrize("whose", ["the site's", "with a user", "with an account below"])
def test_other_accounts_stay(whose: str) -> None:
    picture = a_site()
    if whose == "with a user":
        picture = made_by_us(picture, users=("u1",))
    elif whose == "with an account below":
        picture = made_by_us(picture)
        accounting = picture.seen.accounting
        assert accounting is not None
        below = Association(account="a1", parent="a")
        picture = picture.see(accounting=replace(accounting, associations=(*accounting.associations, below)))
    picture = settled(deleted(picture))
    assert accounts(picture) == {"a", "b"}
    assert "q-a" not in picture.memory.quotas


def test_the_account_stays_while_a_job_of_it_is_left() -> None:
    picture = settled(deleted(runs(made_by_us(a_site()), 1, "a", 2)))
    assert "a" in accounts(picture)
    ended = picture.change_job(1, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    assert accounts(settled(ended)) == {"b"}


def test_an_account_that_slurm_does_not_delete_holds_the_quota_up_for_two_minutes_only() -> None:
    picture = settled(deleted(a_site()))
    picture = made_by_us(a_site())
    while "q-a" in picture.memory.quotas and not any(isinstance(a, DropTeam) for a in picture.plan().actions):
        picture, _ = done(deleted(picture))
    picture = picture.then()
    assert picture.memory.quotas["q-a"].status is QuotaStatus.DELETING
    plan = picture.after(130).plan()
    assert "q-a" not in plan.memory.quotas
    assert "quota.account_stays" in {event.kind for event in plan.events}


def test_users_whose_own_lists_name_its_qos_are_told_and_it_goes_when_they_do_not() -> None:
    picture, _ = done(deleted(a_site()))
    accounting = picture.seen.accounting
    assert accounting is not None
    bob = Association(account="a", user="bob", qos=frozenset({"stw-a-g", "stw-a-b"}))
    held = settled(picture.see(accounting=replace(accounting, associations=(*accounting.associations, bob))))
    assert held.memory.quotas["q-a"].failure.endswith(
        "sacctmgr modify user where name=bob account=a set qos-=stw-a-g,stw-a-b"
    )
    now = held.seen.accounting
    assert now is not None
    assert {"stw-a-g", "stw-a-b"} <= now.qos.keys()
    free = settled(held.see(accounting=replace(now, associations=now.associations[:-1])).after(20))
    assert "q-a" not in free.memory.quotas


def test_another_account_that_may_still_use_its_qos_is_told() -> None:
    """Slurm deletes no QOS that somebody may use, also on another cluster."""
    picture, _ = done(deleted(a_site()))
    drop = next(action for action in picture.plan().actions if isinstance(action, DropQos))
    error = f"QOS {drop.qos} is not deleted: account c of cluster two may still use it: sacctmgr modify"
    refused = picture.after(20).see(failures={str(drop.key): f"stale: {error}"}).plan()
    assert refused.memory.quotas["q-a"].failure == error
    assert "quota.trouble" in {event.kind for event in refused.events}
    no_answer = picture.after(20).see(failures={str(drop.key): "retry: no answer"}).plan()
    assert no_answer.memory.quotas["q-a"].failure == ""


def test_a_deletion_that_was_refused_for_a_job_that_is_seen_now_names_the_job() -> None:
    """The job was submitted in the moment in which its team's quota went."""
    picture, _ = done(deleted(a_site()))
    drop = next(action for action in picture.plan().actions if isinstance(action, DropQos))
    refused = (
        runs(picture, 1, "a", 2).after(20).see(failures={str(drop.key): "stale: 1 jobs are of QOS stw-a-g"}).plan()
    )
    assert refused.memory.quotas["q-a"].failure == "it waits for job 1, which still runs in its QOS"
    assert "quota.trouble" not in {event.kind for event in refused.events}


def with_user(picture: Picture, *, drop: int = 0, **fields: Any) -> Picture:
    """Ann is in account a, too; `drop`: so many of the last associations are not there any more."""
    accounting = picture.seen.accounting
    assert accounting is not None
    there = accounting.associations[: len(accounting.associations) - drop]
    return picture.see(
        accounting=replace(accounting, associations=(*there, Association(account="a", user="ann", **fields)))
    )


def test_a_user_whose_own_default_is_one_of_its_qos_is_told_and_it_goes_when_he_has_another() -> None:
    """Slurm lets no account lose a QOS that is the default of one of its users. Everything else goes at once."""
    picture = waits(with_user(deleted(a_site()), default_qos="stw-a-g"), 1, "a", 2)
    picture, first = done(picture)
    assert [action.default_qos for action in first if isinstance(action, SetTeam)] == [""]
    accounting = picture.seen.accounting
    assert accounting is not None
    theirs = [each for each in accounting.associations if each.account != "a"]
    both = frozenset({"stw-a-g", "stw-a-b"})
    # What Slurm made of it: limits and the default went, the list stayed as it was.
    refused = (
        *theirs,
        Association(account="a", parent="root", qos=both | {"normal"}),
        Association(account="a", user="ann", qos=both | {"normal"}, default_qos="stw-a-g"),
    )
    picture, _ = done(picture.see(accounting=replace(accounting, associations=refused)))
    kinds = {event.kind for event in picture.plan().events}
    picture = settled(picture)
    assert "quota.trouble" in kinds
    assert picture.memory.quotas["q-a"].failure.endswith(
        "sacctmgr modify user where name=ann account=a set defaultqos=-1"
    )
    now = picture.seen.accounting
    assert now is not None
    account = now.of_account("a")
    assert account is not None
    assert account.qos == {"stw-a-g", "normal"}
    assert set(now.qos) & both == {"stw-a-g"}
    assert picture.seen.jobs[JobId(1)].qos == "normal"
    assert "q-a" not in settled(with_user(picture, drop=1).after(20)).memory.quotas


def test_a_deleted_quota_takes_its_marks_off_running_jobs() -> None:
    picture = settled(runs(a_site(), 2, "a", 2, "b"))
    assert picture.seen.jobs[JobId(2)].priority > LISTS.exempt_priority
    picture, actions = done(deleted(picture))
    assert [action.job for action in actions if isinstance(action, MarkJob)] == [2]
    assert settled(picture).seen.jobs[JobId(2)].priority < LISTS.exempt_priority


def test_a_quota_is_in_force_only_when_its_account_has_the_ceiling_and_the_qos() -> None:
    picture = a_site()
    accounting = picture.seen.accounting
    assert accounting is not None
    quotas = {id: replace(each, status=QuotaStatus.CREATING) for id, each in picture.memory.quotas.items()}
    bare = tuple(Association(account=each.account, parent="root") for each in accounting.associations)
    memory = replace(picture.memory, quotas=quotas, quota_writes={})
    early = replace(picture, memory=memory).see(accounting=replace(accounting, associations=bare))
    picture, _ = done(early.after(20))
    assert {each.status for each in picture.memory.quotas.values()} == {QuotaStatus.CREATING}
    picture = settled(picture)
    assert {each.status for each in picture.memory.quotas.values()} == {QuotaStatus.CREATED}


@pytest.mark.parametrize(
    ("site", "after", "moved"),
    [
        (set(), {"normal"}, "normal"),
        ({"normal"}, {"normal"}, "normal"),
        ({"small", "tiny"}, {"small", "tiny"}, "small"),
        ({"small", "normal"}, {"small", "normal"}, "normal"),
    ],
    ids=["none is left", "it has the common one", "it has others", "it has both"],
)
def test_an_account_is_never_left_without_a_qos_and_its_jobs_go_on_in_one_that_it_has(
    site: set[str], after: set[str], moved: str
) -> None:
    """The doctor's advice against `--qos=normal` takes that from the account. Slurm takes no job of one without any."""
    picture = waits(a_site(), 1, "a", 2)
    accounting = picture.seen.accounting
    assert accounting is not None
    every = (replace(e, qos=e.qos | site) if e.account == "a" else e for e in accounting.associations)
    qos = {**accounting.qos, "small": Qos(name="small"), "tiny": Qos(name="tiny")}
    picture = settled(deleted(picture.see(accounting=replace(accounting, associations=tuple(every), qos=qos))))
    left = picture.seen.accounting
    assert left is not None
    account = left.of_account("a")
    assert account is not None
    assert (set(account.qos), picture.seen.jobs[JobId(1)].qos) == (after, moved)
    assert "q-a" not in picture.memory.quotas


def test_an_account_that_was_left_without_a_qos_gets_one_and_the_quota_goes() -> None:
    """By a Steward of before: its waiting job could be moved nowhere."""
    picture = waits(a_site(), 1, "a", 2)
    accounting = picture.seen.accounting
    assert accounting is not None
    every = (Association(account="a", parent="root") if e.account == "a" else e for e in accounting.associations)
    picture = settled(deleted(picture.see(accounting=replace(accounting, associations=tuple(every)))))
    assert picture.seen.jobs[JobId(1)].qos == "normal"
    left = picture.seen.accounting
    assert left is not None
    account = left.of_account("a")
    assert account is not None
    assert account.qos == {"normal"}


def kinds_of(picture: Picture, turns: int) -> tuple[Picture, set[str]]:
    """The picture after so many turns, and the kinds of all their events."""
    kinds: set[str] = set()
    for _ in range(turns):
        kinds |= {event.kind for event in picture.plan().events}
        picture, _ = done(picture)
    return picture, kinds


def with_defaults_of_ours(picture: Picture) -> Picture:
    """As after `steward quota setup --apply`: the accounts have our QOS before there is a quota."""
    accounting = picture.seen.accounting
    assert accounting is not None
    names = {each.account: (f"stw-{each.account}-g", f"stw-{each.account}-b") for each in accounting.associations}
    every = tuple(
        replace(each, qos=frozenset(names[each.account]), default_qos=names[each.account][0])
        for each in accounting.associations
    )
    return picture.see(accounting=replace(accounting, associations=every))


def wanted_again(picture: Picture, **changes: Any) -> Picture:
    quotas = {**picture.memory.quotas, "q-a": replace(picture.memory.quotas["q-a"], **changes)}
    return replace(picture, memory=replace(picture.memory, quotas=quotas))


@pytest.mark.parametrize("end", [{"status": QuotaStatus.DELETING}, {"enabled": False}], ids=["deleted", "disabled"])
def test_a_quota_that_comes_back_has_the_default_qos_again_and_no_person_is_blamed(end: dict[str, Any]) -> None:
    """Also where the default was ours before the first quota: what we took away is ours, not a person's."""
    before = settled(with_defaults_of_ours(a_picture(own("a", 4), own("b", 4))))
    busy = wanted_again(runs(before, 1, "a", 2), **end)
    ended, _ = kinds_of(busy, 4)
    assert ended.seen.accounting is not None
    gone = ended.seen.accounting.of_account("a")
    assert gone is not None
    assert gone.default_qos == ""
    picture, kinds = kinds_of(wanted_again(ended, status=QuotaStatus.CREATING, enabled=True).after(20), 4)
    assert "quota.by_hand" not in kinds
    assert picture.seen.accounting is not None
    found = picture.seen.accounting.of_account("a")
    assert found is not None
    assert (found.default_qos, found.limits.get("gres/gpu")) == ("stw-a-g", 104)
    assert picture.memory.quotas["q-a"].status is QuotaStatus.CREATED


def test_an_account_that_comes_back_bare_gets_the_default_qos_again_also_where_it_was_ours_from_the_first() -> None:
    site = settled(with_defaults_of_ours(a_picture(own("a", 4), own("b", 4))))
    before = site.seen.accounting
    assert before is not None
    others = tuple(each for each in before.associations if each.account != "a")
    gone, _ = kinds_of(site.see(accounting=replace(before, accounts={"b": Account(name="b")}, associations=others)), 1)
    back = gone.see(accounting=replace(before, associations=(*others, Association(account="a", parent="root"))))
    picture, kinds = kinds_of(back.after(20), 3)
    assert "quota.by_hand" not in kinds
    assert picture.seen.accounting is not None
    found = picture.seen.accounting.of_account("a")
    assert found is not None
    assert found.default_qos == "stw-a-g"


def test_a_quota_that_is_deleted_before_its_qos_are_seen_leaves_nothing_behind() -> None:
    """Its QOS and limits are made while the picture is read; the quota goes only once they are gone again."""
    both = settled(a_picture(own("b", 4)))
    created = replace(both, memory=replace(both.memory, quotas={**both.memory.quotas, "q-a": own("a", 4)}))
    accounting = created.seen.accounting
    assert accounting is not None
    accounts = {**accounting.accounts, "a": Account(name="a")}
    bare = (*accounting.associations, Association(account="a", parent="root"))
    created = created.see(accounting=replace(accounting, accounts=accounts, associations=bare))
    plan = created.plan()
    made: list[Action] = [action for action in plan.actions if isinstance(action, (SetQos, SetTeam))]
    unseen, _ = kinds_of(deleted(replace(created, memory=plan.memory)).after(1.0), 1)
    assert "q-a" in unseen.memory.quotas
    picture = settled(written(unseen, made))
    assert "q-a" not in picture.memory.quotas
    assert picture.seen.accounting is not None
    assert not [name for name in picture.seen.accounting.qos if "-a-" in name]
    found = picture.seen.accounting.of_account("a")
    assert found is not None
    assert (found.default_qos, found.qos & {"stw-a-g", "stw-a-b"}) == ("", frozenset())


def test_a_qos_whose_deletion_may_be_under_way_is_made_again_only_after_that() -> None:
    closing, first = done(deleted(a_site()))
    assert any(isinstance(action, SetTeam) for action in first)
    plan = closing.plan()
    drops: list[Action] = [action for action in plan.actions if isinstance(action, DropQos)]
    assert drops
    smaller = replace(own("a", 2), status=QuotaStatus.CREATING)
    memory = replace(plan.memory, quotas={**plan.memory.quotas, "q-a": smaller})
    again = replace(closing, memory=memory).after(1.0).plan()
    late: list[Action] = [action for action in again.actions if isinstance(action, SetQos)]
    picture, kinds = kinds_of(written(replace(closing, memory=again.memory), [*drops, *late]).after(20), 4)
    assert "quota.by_hand" not in kinds
    assert picture.seen.accounting is not None
    has = picture.seen.accounting.qos["stw-a-g"]
    assert (has.priority, has.limits["gres/gpu"]) == (1000, 2)
    assert picture.memory.quotas["q-a"].status is QuotaStatus.CREATED
