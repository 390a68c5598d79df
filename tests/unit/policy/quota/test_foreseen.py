"""No job is evicted in vain for a limit of the site's, also before Slurm has said that it holds the owner's job up."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.accounting import Accounting, Association, Qos
from steward.model.partition import Partition, PartitionState
from steward.model.quota import Wrote
from tests.builders.picture import Picture
from tests.builders.quota import WEAK
from tests.builders.quota_lent import gone_in
from tests.builders.quota_site import a_site, own, runs, settled, waits

ANN, BOB = 5001, 5002
SMALL = Qos(name="small", limits={"gres/gpu": 1})


def accounting(picture: Picture) -> Accounting:
    assert picture.seen.accounting is not None
    return picture.seen.accounting


def with_user(picture: Picture, *, user: str = "ann", uid: int | None = ANN, **fields: Any) -> Picture:
    more = Association(account="b", user=user, uid=uid, **fields)
    return picture.see(accounting=replace(accounting(picture), associations=(*accounting(picture).associations, more)))


def with_qos(picture: Picture, *qos: Qos) -> Picture:
    has = accounting(picture)
    return picture.see(accounting=replace(has, qos={**has.qos, **{each.name: each for each in qos}}))


def with_limits(picture: Picture, account: str, limits: dict[str, int], parent: str = "root") -> Picture:
    every = tuple(each for each in accounting(picture).associations if each.account != account or each.user)
    known = accounting(picture).of_account(account) or Association(account=account, parent=parent)
    more = replace(known, limits=limits)
    return picture.see(accounting=replace(accounting(picture), associations=(*every, more)))


def lent(*, own_qos: str = "", mine: str = "stw-b-g", **fields: Any) -> Picture:
    """Team a has borrowed all that team b does not use; ann runs one GPU with one CPU for b."""
    site = a_site(WEAK, own("a", 4), own("b", 4)).see(
        partitions={"main": Partition(name="main", state=PartitionState.UP, own_qos=own_qos)}
    )
    site = runs(runs(site, 1, "a", 4), 2, "a", 3, "b", "n2", started=1000.0)
    return settled(runs(site, 3, "b", 1, "g", "n2", **{"user_id": ANN, "qos": mine, **fields}))


def asks(picture: Picture, **fields: Any) -> Picture:
    return waits(picture, 9, "b", 2, **{"reason": "Resources", "user_id": ANN, **fields})


def gone(picture: Picture) -> set[int]:
    return gone_in(picture, 2)


CPUS = {"cpu": 1}


def test_nobody_is_evicted_for_a_job_of_a_user_whose_own_limit_is_reached() -> None:
    picture = with_user(lent(), limits=CPUS)
    assert gone(asks(picture)) == set()
    assert gone(asks(picture, user_id=BOB)) == {2}
    assert gone(asks(lent())) == {2}
    assert gone(asks(with_user(lent(), uid=None, limits=CPUS))) == {2}
    assert gone(asks(with_user(lent(), limits={"cpu": 100}))) == {2}
    assert gone(asks(with_user(lent(), limits={"node": 1}))) == {2}, "jobs on one node count as one"


def test_what_slurm_says_counts_when_it_has_had_the_time_to_look() -> None:
    """It may know of something that we do not: an administrator let this one job pass the limit."""
    picture = asks(with_user(lent(), limits=CPUS))
    assert gone_in(picture, 55) == set()
    assert gone_in(picture, 65) == {2}


def test_a_users_association_for_the_jobs_partition_takes_the_place_of_his_other_one() -> None:
    picture = with_user(with_user(lent(), limits=CPUS), partition="main", limits={"cpu": 100})
    assert gone(asks(picture)) == {2}
    assert gone(asks(with_user(with_user(lent(), limits=CPUS), uid=None, partition="main"))) == {2}
    assert gone(asks(with_user(lent(), partition="main", limits=CPUS))) == set()
    assert gone(asks(with_user(lent(), partition="other", limits=CPUS))) == {2}


def test_nobody_is_evicted_for_a_job_in_a_qos_of_the_sites_that_its_own_team_fills() -> None:
    picture = with_qos(lent(mine="small"), SMALL)
    assert gone(asks(picture, qos="small")) == set()
    assert gone(asks(with_qos(lent(mine="small"), replace(SMALL, limits={"gres/gpu": 3})), qos="small")) == {2}


def test_what_those_have_who_may_be_evicted_does_not_count() -> None:
    """The borrower itself is in the QOS: when it has left there is room."""
    picture = with_qos(lent().change_job(2, qos="small"), replace(SMALL, limits={"gres/gpu": 4}, used={"gres/gpu": 4}))
    assert gone(asks(picture, qos="small")) == {2}


def test_a_limit_of_the_qos_takes_the_place_of_the_users_and_of_the_accounts() -> None:
    picture = with_user(lent(), limits={"gres/gpu": 1})
    assert gone(asks(picture)) == {2}
    assert gone(asks(with_qos(picture, Qos(name="normal")), qos="normal")) == set()


def test_the_limits_of_accounts_above_count_and_so_do_the_sites_on_the_teams_own() -> None:
    above = with_limits(lent(), "faculty", CPUS)
    every = tuple(replace(e, parent="faculty") if e.account == "b" else e for e in accounting(above).associations)
    assert gone(asks(above.see(accounting=replace(accounting(above), associations=every)))) == set()
    assert gone(asks(above)) == {2}
    on_its_own = with_limits(lent(), "b", {"gres/gpu": 8, "gres/gpu:l4": 8, "cpu": 1})
    assert gone(asks(on_its_own)) == set()
    writes = {**on_its_own.memory.quota_writes, "account b/cap:cpu": Wrote(values=("1",))}
    assert gone(asks(replace(on_its_own, memory=replace(on_its_own.memory, quota_writes=writes)))) == {2}


@pytest.mark.parametrize(("limit", "given_up"), [({"cpu": 100}, {2}), ({"mem": 1}, set())])
def test_what_the_partitions_qos_limits_is_limited_by_nobody_else(limit: dict[str, int], given_up: set[int]) -> None:
    picture = with_qos(with_user(lent(own_qos="wide"), limits=CPUS), Qos(name="wide", limits=limit))
    assert gone(asks(picture)) == given_up


@pytest.mark.parametrize("unknown", ["the partition", "its QOS"])
def test_where_a_partition_is_not_known_nothing_is_foreseen(unknown: str) -> None:
    picture = with_user(lent(own_qos="" if unknown == "the partition" else "wide"), limits=CPUS)
    assert gone(asks(picture, **({"partition": "main,other"} if unknown == "the partition" else {}))) == {2}
