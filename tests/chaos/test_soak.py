"""Six weeks with a fault a day: nothing that the head keeps grows with what it has been through.

The real cycle on the real store, over the simulated cluster. What is counted are entries of its memory and rows of its
store; what bounds them is written down in docs/performance.md.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import fields

import pytest

from tests.chaos.bench import LONGEST_S, Bench
from tests.chaos.flows import a_cluster
from tests.property.law import Law

FAULTS = 45
SETTLED = 35
"""From then on the days that it keeps are full: 28 of what was done to hardware, 30 of the journal."""
DAY_S = 86400.0
LOOK_S = 7200.0
TABLES = ("memory", "journal", "events")
"""The ledger keeps 400 days."""


@pytest.mark.long
def test_after_six_weeks_of_faults_it_keeps_no_more_than_after_five() -> None:
    bench = a_cluster(resumes=FAULTS)
    try:
        bench.run(60.0)
        kept = [_after_a_fault(bench) for _ in range(FAULTS)]
    finally:
        bench.close()
    before, after = _most(kept[SETTLED - 5 : SETTLED]), _most(kept[-5:])
    assert {name: (before[name], many) for name, many in after.items() if many > before[name]} == {}
    assert min(after["journal"], after["memory"]) > 0


def _after_a_fault(bench: Bench) -> Mapping[str, int]:
    """A job loses a node, comes back and ends; a day passes; how much is kept."""
    job = bench.world.submit(2, works_s=12.0, spare=True)
    assert isinstance(bench.law, Law)
    bench.law.opted.add(job)
    bench.run(3.0)
    nodes = bench.world.slurm.jobs[job].nodes
    assert nodes, "the job runs"
    bench.world.machines.kill(max(nodes))
    bench.run(50.0)
    assert not bench.watch.broken
    tick_s, bench.world.tick_s, bench.longest_s = bench.world.tick_s, LOOK_S, LOOK_S
    bench.run(DAY_S)
    bench.world.tick_s, bench.longest_s = tick_s, LONGEST_S
    bench.run(3.0)
    return {**_in_memory(bench), **_in_store(bench)}


def _in_memory(bench: Bench) -> Mapping[str, int]:
    found = {one.name: getattr(bench.memory, one.name) for one in fields(bench.memory)}
    return {f"memory.{name}": len(value) for name, value in found.items() if isinstance(value, Mapping)}


def _in_store(bench: Bench) -> Mapping[str, int]:
    with sqlite3.connect(bench.disk.file) as store:
        return {table: store.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def _most(kept: list[Mapping[str, int]]) -> Mapping[str, int]:
    return {name: max(each.get(name, 0) for each in kept) for name in kept[-1]}
