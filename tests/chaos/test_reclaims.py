"""A reclaim survives the head's death at each of its writes and acts, slurmdbd's death, and an admin's hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from steward.model.action import SetQos
from steward.model.events import Event
from steward.model.job import JobState
from steward.model.quota import QuotaStatus
from tests.chaos.bench import Bench
from tests.chaos.cell import Result, run_cell, run_control
from tests.chaos.columns import COLUMNS, Column
from tests.chaos.flow import Flow
from tests.chaos.slurm_port import KEY, WHY
from tests.chaos.team_flows import RECLAIMS
from tests.chaos.trouble import Point
from tests.fakes.branches import at_each
from tests.fakes.team_world import TeamWorld
from tests.property.law import Law

BY_NAME = {flow.name: flow for flow in RECLAIMS}
START = "owner asks"


def each_kill(flow: Flow, point: Point) -> tuple[Result, list[Result]]:
    """The reclaim undisturbed, and killed once at each point that it comes to."""
    control = run_control(flow, START)

    def story(here: Callable[[], bool]) -> Result:
        def begin(bench: Bench, node: str) -> None:
            def dies() -> bool:
                if is_copy := here():
                    bench.move()
                    assert isinstance(bench.law, Law)
                    bench.law.asks_again = False  # the reclaim itself has each plan twice
                return is_copy

            bench.trouble.kill_at, bench.trouble.kills, bench.trouble.dies = point, 1, dies

        return run_cell(flow, START, Column(name=point.value, begin=begin, is_kill=True, lasts_s=0.0), control)

    return at_each(story)


@pytest.mark.long
@pytest.mark.parametrize("point", [Point.AFTER_WRITE, Point.AFTER_ACT], ids=lambda point: point.value)
@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_head_killed_at_each_write_and_act_of_a_reclaim_ends_it_as_if_it_lived(name: str, point: Point) -> None:
    """One that dies before a write or an act leaves what one leaves that died after the write or the act before it."""
    undisturbed, found = each_kill(BY_NAME[name], point)
    assert [(at, each.broken) for at, each in enumerate(found, 1) if each.broken] == []
    assert all(each.felt for each in found)
    assert (undisturbed.felt, undisturbed.broken) == (False, ())
    assert len(found) > 3, "there were some"


def slurmdbd_dies(bench: Bench, node: str) -> None:
    assert isinstance(bench.world, TeamWorld)
    bench.world.accounting.dbd_up = False


def slurmdbd_starts(bench: Bench, node: str) -> None:
    assert isinstance(bench.world, TeamWorld)
    bench.world.accounting.dbd_up = True


DEAD_DBD = Column(name="slurmdbd killed, started again", begin=slurmdbd_dies, end=slurmdbd_starts)


@pytest.mark.parametrize("step", ["owner asks", "borrower chosen", "borrower is evicted"])
@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_reclaim_ends_well_while_slurmdbd_is_dead(name: str, step: str) -> None:
    found = run_cell(BY_NAME[name], step, DEAD_DBD)
    assert (found.felt, found.broken) == (True, ())


@pytest.mark.parametrize("fault", ["slurmctld killed, started again", "agent killed"])
@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_reclaim_ends_well_whoever_else_dies_in_the_middle(name: str, fault: str) -> None:
    column = next(each for each in COLUMNS if each.name == fault)
    found = run_cell(BY_NAME[name], "borrower chosen", column)
    assert (found.felt, found.broken) == (True, ())


@pytest.mark.parametrize("team", ["guest", "owner"])
@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_quota_that_is_deleted_in_the_middle_of_a_reclaim_goes_and_every_job_ends(name: str, team: str) -> None:
    """Slurm has begun with the borrower; Steward ends none any more for a team whose quota goes."""
    flow = BY_NAME[name]
    bench = flow.make()
    flow.begin(bench)
    while not flow.steps["borrower chosen"](bench):
        bench.run(0.5)
    going = {id: replace(q, status=QuotaStatus.DELETING) for id, q in bench.memory.quotas.items() if q.team == team}
    bench.remember(replace(bench.memory, quotas={**bench.memory.quotas, **going}))
    bench.run(300.0)
    jobs, left = bench.world.slurm.jobs.values(), {quota.team for quota in bench.memory.quotas.values()}
    assert isinstance(bench.world, TeamWorld)
    qos = set(bench.world.accounting.qos)
    bench.close()
    was_evicted = 0 if (name, team) == ("reclaim by Steward", "owner") else 1
    assert [(job.state, job.restarts) for job in jobs] == [(JobState.COMPLETED, n) for n in (0, was_evicted, 0)]
    (other,) = {"guest", "owner"} - {team}
    assert (left, qos) == ({other}, {"normal", f"stw-{other}-g", f"stw-{other}-b"})


@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_limit_that_an_admin_sets_in_the_middle_of_a_reclaim_stays_and_is_told(name: str) -> None:
    flow = BY_NAME[name]
    bench = flow.make()
    flow.begin(bench)
    while not flow.steps["borrower chosen"](bench):
        bench.run(0.5)
    assert isinstance(bench.world, TeamWorld)
    accounting = bench.world.accounting
    accounting.set_qos(SetQos(key=KEY, why=WHY, qos="stw-guest-b", caps=(("gres/gpu", 4), ("gres/gpu:l4", 4))))
    bench.run(120.0)
    told: list[Event] = [event for event in bench.store.told if event.kind == "quota.by_hand"]
    bench.close()
    assert accounting.qos["stw-guest-b"].limits["gres/gpu"] == 4
    assert any("stw-guest-b/cap:gres/gpu is 4 in Slurm: it was set by hand" in event.text for event in told)
    assert flow.steps["owner's job runs"](bench)
