"""Accounts without a quota may use what no team owns; a quota that goes and comes again; types that are not there."""

from dataclasses import replace
from typing import Any

from steward.model.accounting import ACCOUNT_MARK, Account, Association
from steward.model.action import MoveJob, SetTeam
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.quota import QuotaStatus, Share
from steward.policy.draft import Draft
from steward.policy.quota.view import quota_view
from steward.views.explain_quota import quota_lines
from tests.builders.picture import Picture
from tests.builders.quota import C5, LISTS, P5, WEAK, a_picture, a_quota, tres
from tests.builders.quota_site import a_site, counted_by_slurm, done, own, runs, settled, waits
from tests.builders.want import but


def with_account(picture: Picture, name: str, parent: str = "root", gpus: int | None = None) -> Picture:
    accounting = picture.seen.accounting
    assert accounting is not None
    limits = {} if gpus is None else {"gres/gpu": gpus}
    accounts = {**accounting.accounts, name: Account(name=name)}
    more = Association(account=name, parent=parent, limits=limits, qos=frozenset({"normal"}))
    return picture.see(accounting=replace(accounting, accounts=accounts, associations=(*accounting.associations, more)))


def limit(picture: Picture, account: str, tres: str = "gres/gpu") -> int | None:
    assert picture.seen.accounting is not None
    has = picture.seen.accounting.of_account(account)
    assert has is not None
    return has.limits.get(tres)


def explained(picture: Picture, id: int) -> str:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    return "\n".join(quota_lines(picture.seen.jobs.get(JobId(id)), draft))


def test_accounts_without_a_quota_may_use_what_no_team_owns() -> None:
    """Of eight GPUs a team owns five. Both accounts together may have three."""
    site = settled(with_account(with_account(a_site(WEAK, own("a", 5)), "x"), "y"))
    assert (limit(site, "x"), limit(site, "y")) == (3, 3)
    site = settled(runs(site, 1, "x", 2, on="n2", qos="normal"))
    assert (limit(site, "x"), limit(site, "y")) == (3, 3)
    site = settled(runs(site, 2, "y", 1, on="n2", qos="normal"))
    assert (limit(site, "x"), limit(site, "y")) == (2, 1)
    assert "may use only what no team owns" in explained(site, 1)
    cleaning = site.change_job(1, state=JobState.CANCELLED, flags=frozenset({"COMPLETING"}))
    assert limit(settled(cleaning), "x") == 0


def test_where_teams_own_cpus_beside_accelerators_others_have_the_cpus_that_no_team_owns() -> None:
    """Of four machines two are without accelerators. Slurm counts the CPUs of both types together."""
    cpus = a_quota("b", Share(machine_type=C5.name, vcpu=12))
    site = a_picture(own("a", 6), cpus, machines=4, can=WEAK)
    fields: dict[str, Any] = {"gres": "", "cpus": 8, "memory_mb": C5.memory_mb, "features": frozenset({C5.name})}
    plain = {NodeName(n): replace(site.seen.nodes[NodeName(n)], **fields) for n in ("n3", "n4")}
    site = settled(with_account(site.see(nodes={**site.seen.nodes, **plain}), "x"))
    assert (limit(site, "x"), limit(site, "x", "cpu")) == (2, 4 + 24), "and those of two of eight GPUs"
    unknown = replace(plain[NodeName("n4")], name=NodeName("n5"), features=frozenset())
    more = settled(site.see(nodes={**site.seen.nodes, unknown.name: unknown}))
    assert limit(more, "x", "cpu") == 4 + 24 + 8, "a machine of no known type is nobody's"
    no_cpus = {"q-a": site.memory.quotas["q-a"]}
    assert limit(settled(replace(site, memory=replace(site.memory, quotas=no_cpus))), "x", "cpu") is None


def test_accounts_below_have_the_limit_of_the_one_above_and_accounts_above_a_team_none() -> None:
    site = with_account(with_account(with_account(a_site(WEAK, own("a", 5)), "x"), "below", "x"), "dept")
    accounting = site.seen.accounting
    assert accounting is not None
    under = tuple(replace(a, parent="dept") if a.account == "a" else a for a in accounting.associations)
    site = settled(site.see(accounting=replace(accounting, associations=under)))
    assert (limit(site, "x"), limit(site, "below"), limit(site, "dept")) == (3, None, None)


def test_an_account_that_setup_prepared_has_that_limit_until_it_has_a_quota() -> None:
    site = with_account(a_site(WEAK, own("a", 5)), "x")
    accounting = site.seen.accounting
    assert accounting is not None
    accounts = {**accounting.accounts, "x": Account(name="x", organization=ACCOUNT_MARK)}
    *rest, last = accounting.associations
    prepared = replace(last, qos=frozenset({"stw-x-g", "stw-x-b"}), default_qos="stw-x-g")
    site = settled(site.see(accounting=replace(accounting, accounts=accounts, associations=(*rest, prepared))))
    assert limit(site, "x") == 3
    given = {**site.memory.quotas, "q-x": own("x", 2)}
    assert limit(settled(replace(site, memory=replace(site.memory, quotas=given))), "x") == 102, (
        "what it owns, and may borrow"
    )


def test_a_limit_is_lowered_by_what_slurm_counts_too_little_in_the_account() -> None:
    """Slurm 26.05 takes parts of heterogeneous jobs out of the use at their submission; three GPUs are in use here."""
    site = with_account(a_site(replace(LISTS, miscounts_parts=True), own("a", 5)), "x")
    site = runs(settled(site), 1, "x", 3, on="n2", qos="normal", started=site.now - 60.0)
    site, _ = done(counted_by_slurm(site, "x", 1))
    assert limit(site, "x") == 1


def test_what_a_person_set_stays_and_a_site_that_wants_none_gets_none() -> None:
    site = a_site(WEAK, own("a", 5))
    by_hand = with_account(site, "x", gpus=7)
    assert limit(settled(by_hand), "x") == 7
    none = replace(site, want=replace(site.want, quota=but(site.want.quota, limit_others=False)))
    assert limit(settled(with_account(none, "x")), "x") is None
    assert "may use what teams own" in explained(runs(with_account(none, "x"), 1, "x", 1, qos="normal"), 1)


def test_the_limits_go_with_the_last_quota_or_the_setting() -> None:
    site = settled(with_account(a_site(WEAK, own("a", 5)), "x"))
    off = replace(site, want=replace(site.want, quota=but(site.want.quota, limit_others=False)))
    assert limit(settled(off), "x") is None
    gone = settled(ending(site))
    assert (limit(gone, "x"), gone.memory.quotas) == (None, {})


def ending(picture: Picture) -> Picture:
    quotas = {"q-a": replace(picture.memory.quotas["q-a"], status=QuotaStatus.DELETING)}
    return replace(picture, memory=replace(picture.memory, quotas={**picture.memory.quotas, **quotas}))


def test_a_team_whose_quota_goes_is_not_free_of_limits_while_others_have_theirs() -> None:
    site = settled(ending(a_site(WEAK, own("a", 4), own("b", 4), machines=3)))
    assert limit(site, "a") == 8
    assert not any(wrote.foreign for wrote in site.memory.quota_writes.values())
    assert limit(settled(runs(site, 1, "a", 2, on="n1", qos="normal")), "a") == 8


def test_so_is_one_whose_account_steward_made_and_a_user_is_in_it() -> None:
    site = a_site(WEAK, own("a", 4), own("b", 4), machines=3)
    accounting = site.seen.accounting
    assert accounting is not None
    accounts = {**accounting.accounts, "a": Account(name="a", organization=ACCOUNT_MARK)}
    ann = Association(account="a", user="ann")
    site = site.see(accounting=replace(accounting, accounts=accounts, associations=(*accounting.associations, ann)))
    site = settled(ending(site))
    assert (limit(site, "a"), list(site.memory.quotas)) == (8, ["q-b"])


def test_a_quota_that_cannot_go_says_for_which_job_it_waits() -> None:
    site = settled(ending(settled(runs(a_site(WEAK), 1, "a", 2))))
    assert site.memory.quotas["q-a"].failure == "it waits for job 1, which still runs in its QOS"


def test_jobs_that_were_moved_when_a_quota_went_come_back_with_it() -> None:
    site = waits(settled(runs(a_site(WEAK), 1, "a", 2)), 2, "a", 1, reason="Priority")
    site, _ = done(ending(site))
    site, actions = done(site)
    assert [(each.job, each.qos) for each in actions if isinstance(each, MoveJob)] == [(2, ("normal",))]
    again = {**site.memory.quotas, "q-a": replace(own("a", 4), id="q-new")}
    site, actions = done(replace(site, memory=replace(site.memory, quotas=again)))
    assert any(isinstance(each, SetTeam) for each in actions)
    assert [(each.job, each.qos) for each in actions if isinstance(each, MoveJob)] == [(2, ("stw-a-g",))]


def test_a_quota_of_a_machine_type_that_is_not_there_gives_nothing_of_another() -> None:
    planned = a_quota("a", Share(machine_type=P5.name, count=2))
    site = settled(a_picture(planned, own("b", 4), can=WEAK))
    accounting = site.seen.accounting
    assert accounting is not None
    assert accounting.qos["stw-a-g"].limits["gres/gpu"] == 0
    assert limit(site, "a") == 0
    text = explained(waits(site, 1, "a", 1), 1)
    assert "Its quota is of ml.p5.48xlarge, of which the cluster has no node." in text
    warnings = quota_view(Draft(site.seen, site.want, site.memory, site.now)).warnings
    assert any("the cluster has no ml.p5.48xlarge: their jobs wait until it has one" in each for each in warnings)


def test_a_planned_machine_that_is_down_opens_no_other() -> None:
    site = a_picture(a_quota("a", Share(machine_type=P5.name, count=2)), own("b", 4), machines=3, can=WEAK)
    nodes = dict(site.seen.nodes)
    planned = replace(nodes[NodeName("n3")], gres=P5.gres, features=frozenset({P5.name}), base=NodeBase.DOWN)
    site = settled(site.see(nodes={**nodes, planned.name: planned}))
    assert limit(site, "a") == 0
    waiting = waits(site, 1, "a", 8, reason="QOSGrpGRES").change_job(1, requested=tres(8, kind="h100"))
    assert "no ml.p5.48xlarge takes jobs now: it waits until one does (Slurm: QOSGrpGRES)" in explained(waiting, 1)
    up = replace(planned, base=NodeBase.IDLE)
    assert limit(settled(site.see(nodes={**nodes, planned.name: up})), "a") == 24, "and half of that again"


def test_idle_ones_that_nobody_owns_are_not_called_in_use() -> None:
    site = waits(settled(runs(a_site(WEAK, own("a", 4)), 1, "a", 4)), 2, "a", 2)
    assert "2 GPUs of ml.g6.12xlarge; 4 GPUs of ml.g6.12xlarge are idle, but no team lends them" in explained(site, 2)
    warnings = quota_view(Draft(site.seen, site.want, site.memory, site.now)).warnings
    assert any("4 GPUs of ml.g6.12xlarge idle that no team owns" in each for each in warnings)


def test_a_priority_class_that_is_none_is_told() -> None:
    site = waits(a_site(WEAK), 1, "a", 1, comment="priority-class=Urgent")
    assert "Its priority class Urgent is none of this site's (none): it counts as the lowest." in explained(site, 1)


def test_what_a_node_without_a_machine_had_is_for_nobody() -> None:
    """A group's node loses its type with its machine: nothing of it is what no team owns."""
    site = with_account(a_picture(own("a", 4), can=WEAK), "x")
    left = replace(site.seen.nodes[NodeName("n2")], features=frozenset(), gres="gpu:odd:4", flags=frozenset({"DRAIN"}))
    assert limit(settled(site.see(nodes={**site.seen.nodes, left.name: left})), "x") == 0
