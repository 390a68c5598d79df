"""What was lent is taken back for somebody who can run with it: what changed in the grace counts, limits of the site's
count, and who could not save gets the time to."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import RequeueJob, SignalJob
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.quota import Wrote
from steward.workflows.clock_change import moved_earlier
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, MARKS, WEAK
from tests.builders.quota_lent import all_lent, gone_in
from tests.builders.quota_site import (
    a_site,
    borrowed_and_wanted_back,
    done,
    limited,
    own,
    runs,
    settled,
    waits,
    with_partition,
)


def gone_at_the_end(picture: Picture, after_s: float = 61.0) -> list[tuple[type, int]]:
    _, actions = done(picture.after(after_s))
    return [(type(each), each.job) for each in actions if isinstance(each, SignalJob | RequeueJob)]


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "JobHeldUser", "priority": 0},
        {"reason": "Dependency"},
        {"reason": "BeginTime", "eligible": 9e9},
        {"account": "a"},
    ],
    ids=["held", "waits for another job", "waits for its time", "moved to the team that borrowed"],
)
def test_a_job_is_spared_when_the_one_that_it_makes_room_for_cannot_run_any_more(fields: dict[str, Any]) -> None:
    """Found as the grace ends: a job that was released by then may have it."""
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    assert gone_at_the_end(picture.change_job(4, **fields)) == []
    assert gone_at_the_end(picture) == [(RequeueJob, 3)]


def test_a_job_is_spared_when_the_owners_quota_is_lowered_meanwhile() -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    quotas = {**picture.memory.quotas, "q-b": own("b", 1)}
    assert gone_at_the_end(replace(picture, memory=replace(picture.memory, quotas=quotas))) == []


def test_a_job_is_not_ended_for_the_rest_of_an_array_that_the_quota_does_not_cover() -> None:
    """The first of two tasks started on what another job left."""
    site = runs(runs(a_site(WEAK), 1, "a", 4), 2, "a", 4, "b", "n2")
    picture = waits(settled(site), 4, "b", 4, array_job_id=JobId(4), waiting_tasks=2)
    picture, actions = done(picture)
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [2]
    picture = picture.change_job(1, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    picture = runs(picture, 5, "b", 4, array_job_id=JobId(4), array_task=0).change_job(4, waiting_tasks=1)
    assert gone_at_the_end(picture) == []


def test_the_room_is_made_all_the_same_when_another_job_of_the_owner_waits_for_it() -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    picture = waits(picture, 5, "b", 4).change_job(4, reason="Priority")
    assert gone_at_the_end(picture) == [(RequeueJob, 3)]


def test_a_job_whose_head_died_before_the_signal_has_its_grace_when_there_is_one_again() -> None:
    """Memory was kept, the signal was not sent: nothing of it is in the store."""
    picture, actions = done(borrowed_and_wanted_back(WEAK))
    (signal,) = (each for each in actions if isinstance(each, SignalJob))
    asked = {key: at for key, at in picture.memory.asked.items() if key != signal.key}
    picture = replace(picture, memory=replace(picture.memory, asked=asked)).after(600.0)
    picture, actions = done(picture)
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [3]
    assert gone_at_the_end(picture, 30.0) == []
    assert gone_at_the_end(picture) == [(RequeueJob, 3)]


def test_slurm_is_not_helped_when_the_owners_job_cannot_run_any_more() -> None:
    """Slurm did nothing, and was right."""
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    picture, actions = done(picture.change_job(4, reason="JobHeldUser", priority=0).after(300.0))
    assert not any(isinstance(each, SignalJob | RequeueJob) for each in actions)
    assert not any(each.yielding for each in picture.memory.quota_jobs.values())


LIMITS = {"GRES": "gres/gpu", "CpuLimit": "cpu", "MemLimit": "mem"}
GRP = [f"{whose}Grp{what}" for whose in ("QOS", "Assoc") for what in LIMITS]


def full(picture: Picture, reason: str, *, wrote: bool = True, by_hand: bool = False) -> Picture:
    """The limit of which Slurm tells is reached in team b's QOS, or on its account. `wrote`: it is Steward's."""
    accounting = picture.seen.accounting
    assert accounting is not None
    tres = next(name for word, name in LIMITS.items() if reason.endswith(word))
    owner, g = "stw-b-g" if reason.startswith("QOS") else "account b", accounting.qos["stw-b-g"]
    limits = {**g.limits, tres: 1}
    if owner == "stw-b-g":
        accounting = replace(accounting, qos={**accounting.qos, owner: replace(g, limits=limits, used={tres: 1})})
    else:
        every = (replace(each, limits=limits) if each.account == "b" else each for each in accounting.associations)
        accounting = replace(accounting, associations=tuple(every))
    writes = dict(picture.memory.quota_writes)
    writes.pop(f"{owner}/cap:{tres}", None)
    if wrote or by_hand:
        writes[f"{owner}/cap:{tres}"] = Wrote(values=("1", "4"), foreign="1" if by_hand else None)
    return replace(picture.see(accounting=accounting), memory=replace(picture.memory, quota_writes=writes))


def wanted_back(can: Capabilities, reason: str, **fields: Any) -> Picture:
    return waits(all_lent(can), 9, "b", 4, reason=reason, **fields)


@pytest.mark.parametrize("reason", GRP)
def test_others_are_evicted_for_a_job_that_waits_for_a_limit_that_steward_wrote(reason: str) -> None:
    assert gone_in(full(wanted_back(WEAK, reason), reason), 2) == {2, 3}


@pytest.mark.parametrize("can", [WEAK, MARKS], ids=["weak", "marks"])
@pytest.mark.parametrize("reason", GRP)
def test_nobody_is_evicted_where_our_limits_have_room_and_one_of_the_sites_has_not(
    can: Capabilities, reason: str
) -> None:
    """A partition's QOS, or what the site allows this user or an account below: what he would get would stay idle."""
    tres = next(name for word, name in LIMITS.items() if reason.endswith(word))
    assert gone_in(limited(wanted_back(can, reason), tres, whose=reason.partition("Grp")[0]), 70) == set()


@pytest.mark.parametrize("reason", GRP)
def test_a_limits_reason_holds_up_nobody_where_there_is_no_limit_but_ours_with_room(reason: str) -> None:
    """Slurm 22.05 says so of jobs with --gpus or --gpus-per-task for which it finds no node."""
    assert gone_in(with_partition(wanted_back(WEAK, reason)), 2) == {2, 3}


@pytest.mark.parametrize("can", [WEAK, LISTS], ids=["weak", "lists"])
def test_nobody_is_evicted_for_a_job_whose_user_chose_a_qos_of_the_sites_that_is_full(can: Capabilities) -> None:
    assert gone_in(wanted_back(can, "QOSGrpGRES", qos="normal"), 70) == set()
    assert gone_in(wanted_back(WEAK, "Resources", qos="normal"), 2) == {2, 3}


@pytest.mark.parametrize("fields", [{"wrote": False}, {"by_hand": True}], ids=["of another kind", "in our field"])
@pytest.mark.parametrize("reason", ["QOSGrpGRES", "AssocGrpGRES"])
def test_nobody_is_evicted_where_a_person_set_the_limit_that_holds_it_up(reason: str, fields: dict[str, bool]) -> None:
    tries = full(wanted_back(WEAK, reason), reason, **{"wrote": False, **fields})
    assert not any(isinstance(each, SignalJob | RequeueJob) for each in done(tries)[1])


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK], ids=["lists", "marks", "weak"])
def test_nobody_goes_where_none_who_borrowed_is_on_nodes_that_the_owners_job_may_use(can: Capabilities) -> None:
    """Slurm, where it makes the room, takes nobody then; neither does Steward when its patience is over."""
    site = runs(a_site(can, own("a", 0), own("b", 8)), 1, "other", 4, on="n2", qos="normal")
    site = settled(runs(site, 2, "a", 4, "b", "n1", started=1000.0))
    kept_off = frozenset({NodeName("n1")})
    picture = waits(site, 9, "b", 4, reason="Resources", excluded=kept_off)
    assert gone_in(picture, 150) == set()
    assert gone_in(picture.change_job(9, excluded=frozenset()), 150) == {2}


def set_back(by: float) -> Picture:
    """The clock was set back by so much after the victim had its signal."""
    picture, actions = done(borrowed_and_wanted_back(WEAK))
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [3]
    for id, job in picture.seen.jobs.items():
        stamps = {name: at - by for name in ("submitted", "started") if (at := getattr(job, name)) is not None}
        picture = picture.change_job(id, **stamps)
    return replace(picture, memory=moved_earlier(picture.memory, by), now=picture.now - by).after(5.0)


def test_a_clock_that_is_set_back_signals_nobody_twice_and_ends_the_grace_in_time() -> None:
    assert gone_at_the_end(set_back(3600.0), 0.0) == []
    assert gone_at_the_end(set_back(3600.0)) == [(RequeueJob, 3)]


def test_a_job_that_saves_on_its_signal_is_put_back_though_the_clock_was_set_back_meanwhile() -> None:
    picture = set_back(3600.0)
    ended = {"state": JobState.COMPLETED, "nodes": frozenset[NodeName](), "ended": float(round(picture.now))}
    assert gone_at_the_end(picture.change_job(3, **ended), 1.0) == [(RequeueJob, 3)]


def test_an_owner_who_asks_and_cancels_in_series_disturbs_a_borrower_once_in_two_graces() -> None:
    """He may have his own back at any time; what he does not use must not keep others from their work."""
    picture, told = borrowed_and_wanted_back(WEAK), list[float]()
    began, id = picture.now, 4
    while picture.now < began + 600.0:
        for _ in range(2):
            picture, actions = done(picture)
            told += [picture.now for each in actions if isinstance(each, SignalJob)]
            assert not [each for each in actions if isinstance(each, RequeueJob)]
        picture, id = picture.change_job(id, state=JobState.CANCELLED), id + 1
        picture = waits(done(picture)[0], id, "b", 2)
    assert len(told) > 2
    assert all(later - one >= 119.0 for one, later in pairwise(told)), told
