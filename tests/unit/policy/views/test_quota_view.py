"""The tables of `steward quota list`: who owns, uses, lends and borrows what."""

from dataclasses import replace

from steward.model.node import NodeBase
from steward.model.quota import CPU, GPU, Share, Strategy, resource
from steward.policy.draft import Draft
from steward.policy.quota.view import QuotaView, ResourceRow, quota_view
from tests.builders.picture import Picture, n
from tests.builders.quota import G6, a_quota, own, runs, teams, waits

GPUS = resource(G6.name, GPU)


def view(picture: Picture) -> QuotaView:
    return quota_view(Draft(picture.seen, picture.want, picture.memory, picture.now))


def row(found: QuotaView, team: str, name: str = GPUS) -> ResourceRow:
    (one,) = (each for view in found.teams if view.quota.team == team for each in view.rows if each.resource == name)
    return one


def test_what_one_borrows_is_lent_by_those_who_have_it_idle() -> None:
    picture = runs(runs(teams(own("a", 4), own("b", 4)), 1, "a", 4), 2, "a", 2, "b", "n2")
    found = view(picture)
    a, b = row(found, "a"), row(found, "b")
    assert (a.nominal, a.in_use, a.borrowed, a.lent) == (4, 6, 2, 0)
    assert (b.nominal, b.in_use, b.borrowed, b.lent) == (4, 0, 0, 2)
    assert a.share == 2 / 8 / 10
    assert b.share == 0


def test_lent_and_borrowed_are_the_same_in_all() -> None:
    quotas = [own("a", 2), own("b", 3), own("c", 4), own("d", 3, strategy=Strategy.DONT_LEND)]
    picture = runs(runs(teams(*quotas, machines=3), 1, "a", 4, "b"), 2, "c", 1, "g", "n2")
    found = view(picture)
    rows = [row(found, team) for team in "abcd"]
    assert sum(each.lent for each in rows) == sum(each.borrowed for each in rows) == 2
    assert row(found, "d").lent == 0


def test_a_team_without_weight_that_borrows_comes_last() -> None:
    picture = runs(teams(own("a", 2, weight=0), own("b", 4)), 1, "a", 4, "b")
    assert row(view(picture), "a").share is None


def test_what_waits_is_no_use_yet() -> None:
    picture = waits(runs(teams(own("a", 4), own("b", 4)), 1, "a", 4), 2, "b", 2)
    found = view(picture)
    assert row(found, "b").in_use == 0
    assert [(each.quota.team, each.running, each.waiting) for each in found.teams] == [("a", 1, 0), ("b", 0, 1)]


def test_a_quota_that_is_not_in_force_is_shown_with_what_it_would_own() -> None:
    found = view(teams(own("a", 4, enabled=False), own("b", 4)))
    assert row(found, "a").nominal == 4
    assert found.teams[0].running is None


def test_what_was_filled_in_is_shown_and_limits_nobody() -> None:
    found = view(teams(own("a", 2)))
    cpus = row(found, "a", resource(G6.name, CPU))
    assert (cpus.nominal, cpus.counted) == (24, False)


def test_quotas_beyond_what_is_there_are_warned_of() -> None:
    found = view(teams(own("a", 6), own("b", 6)))
    assert found.warnings == (
        "the quotas are 12 GPUs of ml.g6.12xlarge in all, but the cluster has 8 GPUs of ml.g6.12xlarge now: "
        "some jobs will wait",
    )
    assert view(teams(own("a", 4), own("b", 4))).warnings == ()


def test_accelerators_on_nodes_of_no_machine_type_are_warned_of() -> None:
    """Slurm counts them against a team's limit, and no table would say so."""
    picture = teams(own("a", 4), own("b", 4))
    strange = replace(picture.seen.nodes[n("n2")], gres="gpu:odd:4", features=frozenset())
    found = view(picture.see(nodes={**picture.seen.nodes, strange.name: strange}))
    assert (
        "4 accelerators on nodes of no machine type (n2): Slurm counts them against a team's limit, the tables do not; "
        "describe them in [[machine_types]]" in found.warnings
    )
    gone = replace(strange, base=NodeBase.DOWN)
    picture = picture.see(nodes={**picture.seen.nodes, gone.name: gone})
    assert not any("no machine type" in text for text in view(picture).warnings)


def test_accelerators_beside_which_nothing_is_free_are_stranded() -> None:
    quota = a_quota("a", Share(machine_type=G6.name, accelerators=2, vcpu=48))
    picture = runs(teams(quota, machines=1), 1, "a", 2, requested="cpu=48,mem=10G,node=1,gres/gpu:l4=2")
    picture = picture.change_job(1, allocated="cpu=48,mem=10G,node=1,gres/gpu:l4=2")
    (gpus,) = (each for each in view(picture).resources if each.resource == GPUS)
    assert (gpus.capacity, gpus.free, gpus.stranded) == (4, 2, 2)
    assert "2 GPUs of ml.g6.12xlarge free, but no CPU or no memory beside them: stranded" in view(picture).warnings
