"""What jobs ask for, as quotas count it: arrays, heterogeneous jobs, sizes, typed and untyped GPUs, MIG, several
partitions."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import MoveJob, SetNodeCount
from steward.model.ids import JobId
from steward.model.job import parse_tres
from steward.model.quota import CPU, MEM, Share, profile_of, resource
from steward.model.resume import JobMemory, KeptNodes
from steward.policy.draft import Draft
from steward.policy.quota.decide import UnitStanding
from steward.policy.quota.requests import sizes
from steward.policy.quota.turn import Turn, take_turn
from tests.builders.picture import ON, Picture, n
from tests.builders.quota import C5, G6, LISTS, P5, POOL, a_picture, a_quota, tres
from tests.builders.quota_site import a_site, done, own, runs, settled, waits
from tests.builders.want import but


def turn_of(picture: Picture) -> Turn:
    found = take_turn(Draft(picture.seen, picture.want, picture.memory, picture.now))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [("cpu=48,mem=96G", {"cpu": 48, "mem": 98304}), ("mem=0.5T", {"mem": 524288}), ("x=,y,mem=1500M", {"mem": 1500})],
)
def test_resources_in_slurms_words(text: str, found: dict[str, int]) -> None:
    assert dict(parse_tres(text)) == found


def test_a_request_without_a_type_counts_where_its_partition_has_machines() -> None:
    picture = waits(a_site(), 1, "a", 4).change_job(1, requested="cpu=1,gres/gpu=4")
    assert turn_of(picture).rulings[JobId(1)].amounts[POOL] == 4


@pytest.mark.parametrize(
    ("shape", "gib"), [({"exclusive": True}, 96), ({}, 2), ({"exclusive": True, "memory_per_cpu": False}, 2)]
)
def test_an_exclusive_job_has_its_memory_for_each_cpu_of_its_machines(shape: dict[str, Any], gib: int) -> None:
    """Slurm counts it when the job starts: 48 CPUs with 2 GiB each, on one node."""
    asks = {"requested": "cpu=1,mem=2G,gres/gpu=1", "node_count": 1, "memory_per_cpu": True, **shape}
    picture = waits(a_site(), 1, "a", 1).change_job(1, **asks)
    assert turn_of(picture).rulings[JobId(1)].amounts[resource(G6.name, MEM)] == gib * 1024


@pytest.mark.parametrize(
    ("asked", "fields", "counted"),
    [
        ((1, 1), {}, (2, 2)),
        ((2, 2), {}, (2, 2)),
        ((3, 3), {}, (4, 4)),
        ((1, 4), {"memory_per_cpu": False}, (2, 4)),
        ((4, 4), {"node_count": 2}, (4, 4)),
        ((2, 2), {"node_count": 2}, (4, 4)),
        ((3, 3), {"is_total": True, "node_count": 2}, (4, 4)),
        ((1, 1), {"threads": 1}, (1, 1)),
    ],
)
def test_a_job_counts_with_whole_cores_as_slurm_gives_it(
    asked: tuple[int, int], fields: dict[str, Any], counted: tuple[int, int]
) -> None:
    """On machines with two CPUs in a core; its memory is for each CPU."""
    threads, fields = fields.get("threads", 2), {"memory_per_cpu": True, **fields}
    fields.pop("threads", None)
    site = a_picture(a_quota("a", Share(machine_type=C5.name, vcpu=8, memory_gib=16)), machines=2)
    for name in ("n1", "n2"):
        machine = {"cpus": C5.cpus, "memory_mb": C5.memory_mb, "gres": "", "features": frozenset({C5.name})}
        site = site.node(name, **machine, threads=threads)
    site = waits(settled(site), 1, "a", 0, **fields)
    site = site.change_job(1, requested=f"cpu={asked[0]},mem={asked[1]}G,node={fields.get('node_count', 1)}")
    amounts = turn_of(site).rulings[JobId(1)].amounts
    assert (amounts[resource(C5.name, CPU)], amounts[resource(C5.name, MEM)] // 1024) == counted


def test_a_type_that_no_machine_has_never_fits() -> None:
    picture = waits(a_site(), 1, "a", 4).change_job(1, requested=tres(1, kind="h100"))
    assert turn_of(picture).rulings[JobId(1)].standing is UnitStanding.NEVER


def test_accelerators_that_no_quota_names_are_no_way_around_a_teams_own() -> None:
    """Slurm counts them against the team's limit: what runs there would keep the team from what it owns."""
    bare = but(G6, gres="")
    picture = a_picture(a_quota("a", Share(machine_type=P5.name, count=1)))
    types = {**picture.want.capacity.types, G6.name: bare}
    want = replace(picture.want, capacity=but(picture.want.capacity, types=types))
    picture = settled(replace(picture, want=want))
    ruling = turn_of(waits(picture, 1, "a", 2)).rulings[JobId(1)]
    assert (ruling.standing, ruling.unit.options[0][POOL]) == (UnitStanding.NEVER, 2)
    assert picture.seen.accounting is not None
    limits = picture.seen.accounting.qos["stw-a-g"].limits
    assert (limits["gres/gpu"], limits["gres/gpu:l4"]) == (0, 0)


def test_a_job_without_accelerators_may_run_on_nodes_of_no_machine_type() -> None:
    site = a_site()
    plain = replace(site.seen.nodes[n("n2")], partitions=frozenset({"cpu"}), gres="", features=frozenset({"old"}))
    picture = waits(site.see(nodes={**site.seen.nodes, plain.name: plain}), 1, "a", 0, partition="cpu")
    picture = picture.change_job(1, requested=tres(0, 4, 8))
    ruling = turn_of(picture).rulings[JobId(1)]
    assert (ruling.standing, ruling.amounts) == (UnitStanding.OWN, {})


def test_a_job_of_several_partitions_takes_the_machine_type_that_its_team_owns() -> None:
    site = a_site()
    other = replace(site.seen.nodes[n("n2")], partitions=frozenset({"cpu"}), gres="", features=frozenset({C5.name}))
    picture = waits(site.see(nodes={**site.seen.nodes, other.name: other}), 1, "a", 0, partition="cpu,main")
    picture = picture.change_job(1, requested=tres(0, 4, 8))
    ruling = turn_of(picture).rulings[JobId(1)]
    assert (ruling.standing, set(ruling.amounts)) == (UnitStanding.OWN, {resource(G6.name, k) for k in ("cpu", "mem")})


@pytest.mark.parametrize(
    ("asks", "standing"),
    [
        ({}, UnitStanding.OWN),
        ({"required": frozenset({n("n1")})}, UnitStanding.OWN),
        ({"required": frozenset({n("n2")})}, UnitStanding.NEVER),
        ({"excluded": frozenset({n("n1")})}, UnitStanding.NEVER),
        ({"excluded": frozenset({n("n2")})}, UnitStanding.OWN),
        ({"excluded": frozenset({n("n1"), n("n2")})}, UnitStanding.OWN),
        ({"features": P5.name}, UnitStanding.NEVER),
        ({"features": f"{G6.name}|{P5.name}"}, UnitStanding.OWN),
        ({"features": "neither"}, UnitStanding.OWN),
    ],
    ids=[
        "any",
        "its own by name",
        "the other by name",
        "all but its own",
        "all but the other",
        "no node is left",
        "the other by a feature",
        "either",
        "no node has it",
    ],
)
def test_a_quota_covers_no_job_that_only_another_machine_type_serves(
    asks: dict[str, Any], standing: UnitStanding
) -> None:
    """Both types have accelerators that Slurm calls alike; the team owns those of the first."""
    site = a_site()
    types = {**site.want.capacity.types, P5.name: but(P5, gres=G6.gres, gpus=G6.gpus)}
    site = replace(site, want=replace(site.want, capacity=but(site.want.capacity, types=types)))
    other = replace(site.seen.nodes[n("n2")], features=frozenset({P5.name}))
    picture = waits(site.see(nodes={**site.seen.nodes, other.name: other}), 1, "a", 2, **asks)
    assert turn_of(picture).rulings[JobId(1)].standing is standing


def test_of_an_array_as_many_tasks_are_let_in_as_fit() -> None:
    picture = waits(runs(a_site(), 1, "a", 3), 2, "a", 1, array_job_id=JobId(2), waiting_tasks=40)
    ruling = turn_of(picture).rulings[JobId(2)]
    assert (ruling.granted, ruling.borrowed) == (5, 4)


def test_the_parts_of_a_heterogeneous_job_are_let_in_together() -> None:
    picture = runs(a_site(), 1, "a", 2)
    for id in (5, 6):
        picture = waits(picture, id, "a", 2, het_job_id=JobId(5))
    _, actions = done(picture)
    assert {action.job for action in actions if isinstance(action, MoveJob)} == {5, 6}


def test_a_heterogeneous_job_of_which_a_part_does_not_fit_waits_whole() -> None:
    picture = runs(runs(a_site(), 1, "a", 4), 2, "b", 4, on="n2")
    for id in (5, 6):
        picture = waits(picture, id, "a", 2, het_job_id=JobId(5))
    assert {(type(each), each.qos) for each in done(picture)[1] if isinstance(each, MoveJob)} == {
        (MoveJob, ("stw-a-b",))
    }


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"node_count": 1, "most_nodes": 4}, (1, 2, 3, 4)),
        ({"node_count": 1, "node_sizes": "1,2,4"}, (1, 2, 4)),
        ({"node_count": 1, "node_sizes": "1-15:4"}, (1, 5, 9, 13)),
        ({"node_count": 2}, ()),
        ({"node_count": 2, "node_sizes": "x,-"}, ()),
        ({"node_count": 2, "node_sizes": f"{'9' * 5000},2-{'9' * 5000}"}, ()),
        ({"node_count": 1, "node_sizes": "2,4-2000,3000"}, tuple(range(2, 3001))),
    ],
)
def test_the_sizes_that_a_job_takes(fields: dict[str, Any], found: tuple[int, ...]) -> None:
    job = waits(a_site(), 1, "a", 1, **fields).seen.jobs[JobId(1)]
    assert tuple(sizes(job)) == found


def test_a_job_that_takes_fewer_nodes_is_made_smaller_rather_than_waits() -> None:
    site = a_site(LISTS, own("a", 4), own("b", 12), machines=4)
    site = runs(runs(site, 1, "b", 4, on="n1"), 2, "b", 4, on="n2")
    _, actions = done(waits(site, 3, "a", 4, node_sizes="1,2,4", most_nodes=4))
    assert [each.most for each in actions if isinstance(each, SetNodeCount)] == [1]


@pytest.mark.parametrize("asks", [{"most_nodes": 60_000}, {"node_sizes": ",".join(["1-60000"] * 50)}])
def test_jobs_that_take_any_number_of_nodes_cost_a_plan_no_memory_for_each_number(asks: dict[str, Any]) -> None:
    """Any user may submit thousands with `-N 1-60000`: each was tried with each size, in each plan."""
    picture = a_site(LISTS, own("a", 4), own("b", 12), machines=4)
    for id in range(1, 21):
        picture = waits(picture, id, "a", 1, **asks)
    tracemalloc.start()
    try:
        ruling = turn_of(picture).rulings[JobId(1)]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert ruling.nodes == 4


@pytest.mark.parametrize("kept", [True, False])
def test_a_job_for_which_we_keep_nodes_counts_although_slurm_calls_them_reserved(kept: bool) -> None:
    picture = waits(a_site(), 1, "a", 4, reason="ReqNodeNotAvail").opted_in(1)
    nodes = KeptNodes(restart=0, nodes=frozenset({n("n1")}), since=picture.now, until=picture.now + 600)
    memory = JobMemory(id=JobId(1), uid=1000, mode=ON, opted_at=picture.now, kept=nodes if kept else None)
    picture = replace(picture, memory=replace(picture.memory, jobs={JobId(1): memory}))
    assert (JobId(1) in turn_of(picture).rulings) == kept


@pytest.mark.parametrize("fields", [{}, {"is_total": True}], ids=["more than one has", "as Slurm tells"])
def test_a_total_over_several_nodes_is_not_squeezed_onto_fewer(fields: dict[str, Any]) -> None:
    """`-N 1-2 --gpus=8` on machines with four; `-N 1-2 --gpus=2` where each has one left."""
    site = a_site(LISTS, own("a", 8), own("b", 0), machines=2)
    if fields:
        site = settled(runs(runs(site, 5, "a", 3, on="n1"), 6, "a", 3, on="n2"))
    picture = waits(site, 1, "a", 2 if fields else 8, most_nodes=2, **fields)
    ruling = turn_of(picture).rulings[JobId(1)]
    assert (ruling.standing, ruling.nodes, ruling.amounts[POOL]) == (UnitStanding.OWN, 0, 2 if fields else 8)
    assert not any(isinstance(each, SetNodeCount) for each in done(picture)[1])


@pytest.mark.parametrize(
    ("type", "profile"),
    [
        ("1g.10gb", "1g.10gb"),
        ("mig-1g.10gb", "1g.10gb"),
        ("a100_1g.5gb", "1g.5gb"),
        ("nvidia_h100_80gb_hbm3_3g.40gb", "3g.40gb"),
        ("nvidia_a100-sxm4-40gb_1g.5gb+me", "1g.5gb+me"),
        ("nvidia_a100-sxm4-40gb", ""),
        ("l4", ""),
    ],
)
def test_the_mig_profile_in_slurms_word_for_an_accelerator(type: str, profile: str) -> None:
    assert profile_of(type) == profile


@pytest.mark.parametrize("asked", ["1g.5gb", "a100_1g.5gb"])
def test_mig_slices_count_as_such_also_when_they_are_named_as_nvml_names_them(asked: str) -> None:
    slices = resource(G6.name, "gpu:1g.5gb")
    site = a_picture(a_quota("a", Share(machine_type=G6.name, partition=(asked, 4))), machines=1)
    accounting = site.seen.accounting
    assert accounting is not None
    tracked = accounting.tracked | {"gres/gpu:a100_1g.5gb"}
    site = site.see(accounting=replace(accounting, tracked=tracked)).node("n1", gres="gpu:l4:1,gpu:a100_1g.5gb:7")
    site = settled(site)
    assert site.seen.accounting is not None
    assert site.seen.accounting.qos["stw-a-g"].limits["gres/gpu:a100_1g.5gb"] == 4
    asks = "cpu=1,mem=1G,node=1,gres/gpu=2,gres/gpu:a100_1g.5gb=2"
    turn = turn_of(waits(site, 1, "a", 0).change_job(1, requested=asks))
    assert (turn.flavors.capacity[slices], turn.flavors.capacity[POOL]) == (7, 1)
    ruling = turn.rulings[JobId(1)]
    assert (ruling.standing, ruling.amounts[slices], ruling.amounts.get(POOL, 0)) == (UnitStanding.OWN, 2, 0)
