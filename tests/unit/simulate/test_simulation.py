"""The real policy on the simulated cluster: what each fault costs, and that the same seed gives the same result."""

import math
from dataclasses import replace

import pytest

from steward.checks.xid import HARDWARE
from steward.model.case import CaseStep
from steward.model.desired import Desired
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_mode import ResumeMode
from steward.model.setting_types import RepairMode
from steward.simulate.closed_form import expected_ettr
from steward.simulate.faults import KINDS, LLAMA3
from steward.simulate.presets import HABITS, LONG_RUN
from steward.simulate.run import Scenario, SimResult, Way, simulate
from steward.simulate.steward_head import StewardHead
from steward.simulate.traces import DAY_S, FaultSource
from steward.simulate.training import Use
from steward.simulate.world import BEGIN, World, WorldSetup

NODES, SPARES = 6, 4
HOUR_S = 3600.0


def a_scenario(
    source: FaultSource, days: float = 1.0, *, mode: RepairMode = RepairMode.ACT, fixed: bool = True
) -> Scenario:
    return Scenario(
        source=source,
        days=days,
        jobs=(replace(HABITS, nodes=NODES),),
        spares=SPARES,
        want=Desired(repair=RepairPolicy(mode=mode)),
        fixed=fixed,
        reboots=True,
        mode=ResumeMode.parse(LONG_RUN),
    )


def one_fault(kind: str) -> FaultSource:
    """Of a node of the job, after three hours."""
    return FaultSource(name="one", lines=((3.0, kind, 2),))


def lost_s(outcome: SimResult, *uses: Use) -> float:
    return outcome.of(*uses) / NODES


@pytest.mark.parametrize(
    ("kind", "until_over_s", "until_next_s"),
    [
        ("gpu", 1.0, 8.0),  # the check ends the run before the job itself fails
        ("gpu-memory", 1.0, 8.0),
        ("link", 31.0, 8.0),  # degraded: its job may go on, and fails by itself
        ("machine", 4.0, 8.0),  # a heartbeat, a ping, a look at slurmd
        ("maintenance", 4.0, 8.0),
        ("software", 8.0, 8.0),  # the nodes are checked before the job is taken for the cause
        ("hang", 608.0, 8.0),
    ],
)
def test_what_one_fault_costs_with_steward(kind: str, until_over_s: float, until_next_s: float) -> None:
    outcome = simulate(a_scenario(one_fault(kind)), Way.STEWARD, seed=1)
    assert outcome.hits == {kind: 1}
    assert outcome.runs == 2
    assert lost_s(outcome, Use.DETECT) <= until_over_s
    assert lost_s(outcome, Use.QUEUE) <= 4.0 + until_next_s  # the first start of the job is in it
    assert outcome.undone == {}
    assert outcome.submitted_again == 0


def test_plain_slurm_needs_its_timeout_and_its_delay_for_a_dead_node() -> None:
    outcome = simulate(a_scenario(one_fault("machine")), Way.PLAIN, seed=1)
    assert lost_s(outcome, Use.DETECT) == pytest.approx(394.0)
    assert 121.0 <= lost_s(outcome, Use.QUEUE) <= 121.0 + 3 * 4.0


def test_plain_slurm_starts_a_job_on_a_bad_gpu_again_until_a_person_has_noticed() -> None:
    assert simulate(a_scenario(one_fault("gpu")), Way.PLAIN, seed=1).runs > 5


def test_a_job_that_waits_for_the_replacement_waits_for_all_of_it() -> None:
    outcome = simulate(a_scenario(one_fault("gpu")), Way.REPLACEMENT, seed=1)
    assert 1200.0 <= lost_s(outcome, Use.QUEUE) <= 1200.0 + 3 * 4.0


def test_a_site_that_only_reports_resumes_jobs_and_repairs_nothing() -> None:
    outcome = simulate(a_scenario(one_fault("gpu"), mode=RepairMode.REPORT), Way.STEWARD, seed=1)
    assert outcome.runs >= 2
    assert max(count for count, seconds in outcome.out.items() if seconds > 12 * HOUR_S) == 1


SOME = FaultSource(name="some", counts=dict.fromkeys(KINDS, 2), hits_jobs=True)


@pytest.mark.parametrize("fixed", [True, False])
def test_all_nodes_come_back(fixed: bool) -> None:
    outcome = simulate(a_scenario(SOME, days=12.0, fixed=fixed), Way.STEWARD, seed=2)
    assert outcome.undone == {}
    assert max(outcome.out) <= SPARES
    assert outcome.out[0] > 6 * DAY_S


def test_the_same_seed_gives_the_same_result_and_another_one_another() -> None:
    scenario = a_scenario(SOME, days=1.0)
    assert simulate(scenario, Way.STEWARD, 5) == simulate(scenario, Way.STEWARD, 5)
    assert simulate(scenario, Way.STEWARD, 5).node_s != simulate(scenario, Way.STEWARD, 6).node_s


def a_world(scenario: Scenario, seed: int) -> tuple[World, StewardHead]:
    setup = WorldSetup(
        nodes=scenario.nodes, jobs=scenario.jobs, hits_jobs=True, beat_s=0.5, fixed=True, mode=scenario.mode
    )
    world = World(setup, scenario.numbers, seed)
    for fault in scenario.faults(seed):
        world.agenda.at(BEGIN + fault.at, lambda fault=fault: world.strike(fault))  # type: ignore[misc]
    head = StewardHead(world, scenario.settings, reboots=True)
    world.operator = head
    return world, head


def followed(scenario: Scenario, sweep_s: float) -> tuple[dict[tuple[Use, str], float], list[CaseStep], int]:
    """The head plans when something changed or a plan wanted it, and at least every `sweep_s`."""
    world, head = a_world(scenario, seed=3)
    until, swept = BEGIN + scenario.days * DAY_S, BEGIN
    while world.now < until:
        wake = head.wake_at if head.wake_at is not None else math.inf
        if world.is_news or min(wake, swept) <= world.now:
            head.turn()
            wake, swept = head.wake_at if head.wake_at is not None else math.inf, world.now + sweep_s
        world.agenda.move(max(min(world.agenda.next_at, wake, swept, until), world.now + 1e-3))
    world.close()
    training = next(iter(world.trainings.values()))
    return dict(training.spent), [case.step for case in head.memory.cases.values()], head.turns


def test_plans_that_are_left_out_would_have_changed_nothing() -> None:
    scenario = a_scenario(SOME, days=0.25)
    spent, cases, turns = followed(scenario, math.inf)
    all_spent, all_cases, all_turns = followed(scenario, 5.0)
    assert all_turns > 3 * turns
    assert spent == pytest.approx(all_spent, abs=1.0)
    assert cases == all_cases


def test_the_simulation_agrees_with_dalys_formula_to_one_percent() -> None:
    counts = {kind: max(1, round(count * 0.2)) for kind, count in LLAMA3.items()}
    scenario = a_scenario(FaultSource(name="a fifth of Llama 3", counts=counts, hits_jobs=True), days=54.0 * 0.2)
    # on a few nodes so many faults would be more than the limits of repairs allow
    scenario = replace(scenario, jobs=(replace(HABITS, nodes=128),), spares=16)
    found = simulate(scenario, Way.STEWARD, seed=4).ettr
    assert found == pytest.approx(expected_ettr(scenario), rel=0.01)
    assert found >= 0.97


def test_dalys_formula_by_hand() -> None:
    """One fault an hour at random, an hour between saves of 0 s, nothing else: 1 / (e - 1)."""
    scenario = a_scenario(FaultSource(name="x", counts={"software": 24}, hits_jobs=True))
    habits = replace(HABITS, nodes=NODES, interval_s=HOUR_S, save_s=0.0, durable_s=0.0, start_s=-4.0)
    numbers = replace(scenario.numbers, look_s=2.0, check_s=1.0)
    assert expected_ettr(replace(scenario, jobs=(habits,), numbers=numbers)) == pytest.approx(1 / (math.e - 1))


@pytest.mark.parametrize("code", [79, 95])
def test_findings_are_those_of_the_checks(code: int) -> None:
    kind = next(kind for kind in KINDS.values() if kind.check == f"kernel_log.xid{code}")
    assert (kind.severity, kind.advice) == HARDWARE[code][:2]


def test_llama_3_had_419_interruptions() -> None:
    assert sum(LLAMA3.values()) == 419
