"""What a formula gives for the same scenario: a check of the simulation that shares no code with it.

Daly's complete model (2006): work is done in pieces of `interval`, each followed by a pause `save`; faults come at
random, also while the job restarts; each costs `down` until the first step of the next run.
"""

import math

from steward.simulate.faults import KINDS, FaultSign
from steward.simulate.run import Scenario
from steward.simulate.training import Habits

_CREDENTIAL_S = 1.0
"""A resumed job starts in the next whole second at the earliest (0022: slurmd's credentials)."""


def expected_ettr(scenario: Scenario) -> float:
    """Return the expected part of the time that is work, with Steward and enough spares."""
    nodes = sum(job.nodes for job in scenario.jobs)
    return sum(job.nodes * _of_job(job, scenario) for job in scenario.jobs) / nodes


def _of_job(job: Habits, scenario: Scenario) -> float:
    per_s = _rate(scenario) * job.nodes
    if not per_s:
        return job.interval_s / (job.interval_s + job.save_s)
    down = _down_s(scenario) + job.start_s
    cycle = math.expm1(per_s * (job.interval_s + job.save_s))
    # a checkpoint that does not count yet is lost, too: on average `durable_s` more work
    later = math.exp(-per_s * job.durable_s)
    return per_s * job.interval_s * math.exp(-per_s * down) * later / cycle


def _rate(scenario: Scenario) -> float:
    """Return faults per second that stop a job, for each of its nodes."""
    source = scenario.source
    if source.counts is not None:
        nodes = sum(job.nodes for job in scenario.jobs) if source.hits_jobs else scenario.nodes
        return sum(source.counts.values()) / (scenario.days * 86_400.0) / nodes
    if source.lines:
        return len(source.lines) / (scenario.days * 86_400.0) / scenario.nodes
    return source.per_1000_node_days / 1000.0 / 86_400.0


def _down_s(scenario: Scenario) -> float:
    """Return the expected seconds from a fault to the start of the next run."""
    numbers, source = scenario.numbers, scenario.source
    kinds = source.counts or source.mix or {}
    total = sum(kinds.values())
    beat = max(scenario.least_beat_s, scenario.nodes / 250.0)
    found = {
        FaultSign.FOUND: numbers.event_s + numbers.act_s,
        FaultSign.SILENT: beat / 2 + numbers.ping_s + 2 * numbers.act_s,
        FaultSign.CRASH: 1.0 + numbers.check_s,
        FaultSign.HANG: numbers.watchdog_s + numbers.check_s,
    }
    detected = sum(count * _detected(kind, found, numbers.crash_s) for kind, count in kinds.items())
    return (detected / total if total else 0.0) + _CREDENTIAL_S + numbers.look_s / 2


def _detected(name: str, found: dict[FaultSign, float], crash_s: float) -> float:
    kind = KINDS[name]
    waits_for_crash = kind.sign is FaultSign.FOUND and not kind.severity.rank >= 3
    return crash_s if waits_for_crash else found[kind.sign]
