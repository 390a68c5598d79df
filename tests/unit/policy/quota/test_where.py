"""Where Slurm may start a job: no job is evicted on nodes of two partitions for one that needs two nodes, nor on nodes
that are reserved before it would be over."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.reservation import Reservation
from tests.builders.picture import Picture, names
from tests.builders.quota import WEAK, tres
from tests.builders.quota_lent import all_lent, gone_in
from tests.builders.quota_site import a_site, own, runs, settled, waits


def two_partitions(*borrowed_on: str) -> Picture:
    """Nodes n1 and n2 are in p, n3 and n4 in q. Team a borrowed on these nodes, and jobs of its quota have the rest."""
    site = a_site(WEAK, own("a", 8), own("b", 8), machines=4)
    for at, node in enumerate(("n1", "n2", "n3", "n4"), 1):
        site = site.node(node, partitions=frozenset({"p" if at < 3 else "q"}))
        begun, end = (2000.0 + at, "b") if node in borrowed_on else (1000.0, "g")
        site = runs(site, at, "a", 4, end, node, started=begun, partition="p" if at < 3 else "q")
    return settled(site)


@pytest.mark.parametrize(
    ("borrowed_on", "fields", "gone"),
    [
        (("n2", "n4"), {"node_count": 2}, set()),
        (("n3", "n4"), {"node_count": 2}, {3, 4}),
        (("n1", "n2"), {"node_count": 2}, {1, 2}),
        (("n2", "n4"), {"node_count": 1}, {4}),
        (("n1", "n4"), {"node_count": 2, "partition": "p"}, set()),
    ],
    ids=["one in each", "both in the second", "both in the first", "one node", "one partition"],
)
def test_all_nodes_of_a_job_are_in_one_of_its_partitions(
    borrowed_on: tuple[str, ...], fields: dict[str, Any], gone: set[int]
) -> None:
    site = two_partitions(*borrowed_on)
    assert gone_in(waits(site, 9, "b", 2, **{"partition": "p,q", "reason": "Resources", **fields}), 2) == gone


def booked(picture: Picture, in_s: float, *nodes: str, **fields: Any) -> Picture:
    """A course has these nodes later."""
    starts = picture.now + in_s
    made = Reservation(name="course", nodes=names(*nodes), starts=starts, ends=starts + 9000.0, **fields)
    return picture.see(reservations={made.name: made})


@pytest.mark.parametrize(
    ("in_s", "limit_s", "fields", "gone"),
    [
        (3600.0, 7200.0, {}, set()),
        (3600.0, None, {}, set()),
        (3600.0, 600.0, {}, {3}),
        (3600.0, 7200.0, {"cpus": 2}, {3}),
        (3600.0, 7200.0, {"is_magnetic": True}, {3}),
    ],
    ids=["longer", "endless", "over by then", "a part of the node", "magnetic"],
)
def test_nobody_is_evicted_where_a_reservation_begins_before_the_waiting_job_would_be_over(
    in_s: float, limit_s: float | None, fields: dict[str, Any], gone: set[int]
) -> None:
    """Slurm does not start it there."""
    site = booked(all_lent(WEAK), in_s, "n2", **fields)
    assert gone_in(waits(site, 9, "b", 2, reason="None", time_limit_s=limit_s), 2) == gone


def test_a_reservation_of_other_nodes_keeps_nobody_from_what_is_his() -> None:
    assert gone_in(waits(booked(all_lent(WEAK), 60.0, "n1"), 9, "b", 2, time_limit_s=7200.0), 2) == {3}


@pytest.mark.parametrize(("counts", "gone"), [(True, {2, 3}), (False, {3})])
def test_memory_counts_only_where_slurm_counts_it(counts: bool, gone: set[int]) -> None:
    """With SelectTypeParameters=CR_Core jobs share a node whatever memory they ask for."""
    site = a_site(replace(WEAK, counts_memory=counts))
    site = runs(site, 1, "a", 4)
    for id in (2, 3):
        site = runs(site, id, "a", 2, "b", "n2", started=1000.0 * id)
        site = site.change_job(id, requested=tres(2, gib=100), allocated=tres(2, gib=100))
    wants = waits(settled(site), 9, "b", 2, reason="Resources").change_job(9, requested=tres(2, gib=100))
    assert gone_in(wants, 2) == gone
