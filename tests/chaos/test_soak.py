"""Six weeks with a fault a day: nothing that the head keeps grows with what it has been through.

The real cycle on the real store, over the simulated cluster. What is counted are entries of its memory and rows of its
store; what bounds them is written down in docs/performance.md.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from steward.model.desired import Desired
from steward.model.health import Advice, Scope, Severity
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.policy.plan import plan
from tests.chaos.bench import LONGEST_S, Bench
from tests.chaos.flows import a_cluster
from tests.property.law import Law

FAULTS = 45
SETTLED = 35
"""From then on the days that it keeps are full: 28 of what was done to hardware, 30 of the journal."""
MOST_WEEKS = 20, 10
"""The same of what it keeps for a week at most."""
DAY_S = 86400.0
LOOK_S = 7200.0
TABLES = ("memory", "journal", "events")
"""The ledger keeps 400 days."""
N6 = NodeName("n6")
KEPT_FOR_DAYS = ("cases", "jobs", "incidents", "asked", "noted", "history")
KEPT_FOR_WEEKS = ("remedies", "mishaps")
Counts = Mapping[str, int]


@pytest.mark.long
def test_after_six_weeks_of_faults_it_keeps_no_more_than_after_five() -> None:
    bench = a_cluster(resumes=FAULTS)
    days, met = _kept(bench, FAULTS)
    assert not bench.watch.broken
    assert _more(days, SETTLED) == {}
    assert min(days[-1]["journal"], days[-1]["memory"]) > 0
    assert [name for name in (*KEPT_FOR_DAYS, *KEPT_FOR_WEEKS) if not met.get(f"memory.{name}")] == []


@pytest.mark.long
@pytest.mark.parametrize("section", [*KEPT_FOR_DAYS, *KEPT_FOR_WEEKS])
def test_a_head_that_never_forgets_a_section_of_its_memory_turns_that_red(section: str) -> None:
    faults, settled = (FAULTS, SETTLED) if section in KEPT_FOR_WEEKS else MOST_WEEKS
    bench = a_cluster(resumes=faults)
    bench.planner = _Unforgetting(section)
    days, _ = _kept(bench, faults)
    assert f"memory.{section}" in _more(days, settled)


def _kept(bench: Bench, faults: int) -> tuple[Sequence[Counts], Counts]:
    """How much is kept a day after each fault; and the most of each right after one."""
    try:
        bench.run(60.0)
        found = [_after_a_fault(bench, number) for number in range(faults)]
    finally:
        bench.close()
    return [after for _, after in found], _most([at_once for at_once, _ in found])


class _Unforgetting:
    """A head that keeps all that a section of its memory ever had."""

    def __init__(self, section: str) -> None:
        self.section = section

    def __call__(self, seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        decided = plan(seen, want, memory, now)
        whole: dict[Any, Any] = {**getattr(memory, self.section), **getattr(decided.memory, self.section)}
        if self.section in ("history", *KEPT_FOR_WEEKS):
            before = getattr(memory, self.section)
            whole = {key: tuple(dict.fromkeys((*before.get(key, ()), *many))) for key, many in whole.items()}
        changed: dict[str, Any] = {self.section: whole}
        return replace(decided, memory=replace(decided.memory, **changed))


def _more(days: Sequence[Counts], settled: int) -> Mapping[str, tuple[int, int]]:
    """What there is more of in the last days than in the five before it was settled."""
    before, after = _most(days[settled - 5 : settled]), _most(days[-5:])
    return {name: (before[name], many) for name, many in after.items() if many > before[name]}


def _after_a_fault(bench: Bench, number: int) -> tuple[Counts, Counts]:
    """A job loses a node, comes back and ends, beside an incident; how much is kept then, and a day later."""
    job = bench.world.submit(2, works_s=12.0, spare=True)
    assert isinstance(bench.law, Law)
    bench.law.opted.add(job)
    bench.run(3.0)
    nodes = bench.world.slurm.jobs[job].nodes
    assert nodes, "the job runs"
    bench.world.machines.kill(max(nodes))
    _share_a_fault(bench, f"scratch-{number}")
    bench.run(50.0)
    at_once = _in_memory(bench)
    tick_s, bench.world.tick_s, bench.longest_s = bench.world.tick_s, LOOK_S, LOOK_S
    bench.run(DAY_S)
    bench.world.tick_s, bench.longest_s = tick_s, LONGEST_S
    bench.run(3.0)
    return at_once, {**_in_memory(bench), **_in_store(bench)}


def _share_a_fault(bench: Bench, check: str) -> None:
    """Something that nodes share fails for a moment: an incident of that day's own check."""
    machines, now = bench.world.machines, bench.world.now
    machines.fail_check(N6, Severity.DEGRADED, Advice.NONE, now, check, scope=Scope.CLUSTER)
    bench.run(3.0)
    machine = machines.of(N6)
    assert machine is not None
    machine.findings = ()


def _in_memory(bench: Bench) -> Counts:
    """The entries of each section, and of tuples in it."""
    found = {one.name: getattr(bench.memory, one.name) for one in fields(bench.memory)}
    return {f"memory.{name}": _size(value) for name, value in found.items() if isinstance(value, Mapping)}


def _size(section: Mapping[object, object]) -> int:
    return sum(len(value) if isinstance(value, tuple) else 1 for value in section.values())


def _in_store(bench: Bench) -> Counts:
    with sqlite3.connect(bench.disk.file) as store:
        return {table: store.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def _most(kept: Sequence[Counts]) -> Counts:
    return {name: max(each.get(name, 0) for each in kept) for name in kept[-1]}
