"""What can happen in a long random run: faults, and what users and admins do; as data that is printed and shrunk."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from steward.model.health import Advice, Severity
from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode
from tests.chaos import blows
from tests.chaos.bench import Bench
from tests.chaos.columns import COLUMNS, TWO_HEADS
from tests.chaos.flows import N7
from tests.chaos.watch import MAINTENANCE
from tests.property.law import Law

NODES = [NodeName(f"n{i}") for i in (1, 2, 3, 4, 6)]
"""n5 has the job of somebody who did not opt in: it must come through all of it."""
MANY = ResumeMode.parse("any:20,max=20,age=0,backoff=0,hang=10")
BACK_S = 20.0
"""For a head that was away to come back and look."""
PAUSES_S = (0.0, 0.3, 1.0, 3.0, 8.0, 20.0)


@dataclass(frozen=True, slots=True)
class Operation:
    """`kind` happens to `node`, `after_s` the one before."""

    after_s: float
    kind: str
    node: NodeName


def _submit(bench: Bench, node: NodeName) -> None:
    _opted(bench, bench.world.submit(1 + int(node[1:]) % 3, works_s=12.0, spare=node in NODES[3:]))


def _submit_stepping(bench: Bench, node: NodeName) -> None:
    """It tells its steps and may be resumed without evidence, so that it ends well wherever it hangs."""
    _opted(bench, bench.world.submit(1 + int(node[1:]) % 2, mode=MANY, works_s=12.0, step_s=0.7))


def _opted(bench: Bench, job: JobId) -> None:
    assert isinstance(bench.law, Law)
    bench.law.opted.add(job)
    if not bench.disk.is_writable:
        bench.watch.unwritten.add(job)


def _hang(bench: Bench, node: NodeName) -> None:
    """Only jobs that tell their steps: nobody would find the others."""
    for job in bench.world.slurm.jobs.values():
        if node in job.nodes and bench.world.slurm.runs[job.id].step_s is not None:
            bench.world.stand_still(job.id)


def _cancel(bench: Bench, node: NodeName) -> None:
    for job in list(bench.world.slurm.jobs.values()):
        if node in job.nodes and job.is_active and job.id not in bench.watch.bystanders:
            bench.world.slurm.cancel(job.id, bench.world.now)
            bench.watch.cancelled.add(job.id)


def _drain(bench: Bench, node: NodeName) -> None:
    if bench.world.slurm.nodes[node].mark is None:
        bench.world.slurm.admin(node, "DRAIN", MAINTENANCE, bench.world.now)
        bench.watch.foreign.add(node)


def _undrain(bench: Bench, node: NodeName) -> None:
    if node in bench.watch.foreign - {N7}:
        bench.watch.foreign.discard(node)
        bench.world.slurm.undrain(node)


def _cut_power(bench: Bench, node: NodeName) -> None:
    """Of three nodes in one moment."""
    for each in NODES[:3]:
        bench.world.machines.power_off(each, bench.world.now)


def _xid(bench: Bench, node: NodeName) -> None:
    bench.world.machines.fail_check(node, Severity.FATAL, Advice.REPLACE, bench.world.now, "xid")


def _degraded(bench: Bench, node: NodeName) -> None:
    bench.world.machines.fail_check(node, Severity.DEGRADED, Advice.REPLACE, bench.world.now, "degraded")


KINDS: dict[str, Callable[[Bench, NodeName], None]] = {
    "submit": _submit,
    "submit, with steps": _submit_stepping,
    "job hangs": _hang,
    "scancel": _cancel,
    "admin drains": _drain,
    "admin resumes": _undrain,
    "node dies": lambda bench, node: bench.world.machines.kill(node),
    "rack loses power": _cut_power,
    "node freezes": lambda bench, node: bench.world.machines.mute(node, bench.world.now),
    "xid": _xid,
    "degraded": _degraded,
    "capacity": lambda bench, node: bench.world.machines.refusals.append("capacity: none left"),
    "stewardd away": lambda bench, node: bench.restart(10.0),
    **{column.name: column.begin for column in COLUMNS},
    **{f"end of: {column.name}": column.end for column in COLUMNS if column.lasts_s},
}


OF_TWO_HEADS: dict[str, Callable[[Bench, NodeName], None]] = {
    **{column.name: column.begin for column in TWO_HEADS},
    **{f"end of: {column.name}": column.end for column in TWO_HEADS if column.lasts_s},
}
"""What happens where two heads share a database."""
OF_ONE_HEAD = frozenset({"store damaged"})
"""What happens only to a file of the head's own."""


def story(seed: int, length: int, heads: int = 1) -> list[Operation]:
    """The same seed is the same story."""
    dice = random.Random(seed)
    kinds = sorted(KINDS if heads == 1 else (KINDS.keys() | OF_TWO_HEADS.keys()) - OF_ONE_HEAD)
    return [Operation(dice.choice(PAUSES_S), dice.choice(kinds), dice.choice(NODES)) for _ in range(length)]


def happen(bench: Bench, one: Operation) -> None:
    bench.run(one.after_s)
    (KINDS | OF_TWO_HEADS)[one.kind](bench, one.node)


def calm(bench: Bench) -> None:
    """All faults end; people see to what waits for them. A node that froze stays so until a head has looked: a freeze
    that is over by then has left no trace, and what it did to a job looks like the job's own failure."""
    for column in (*COLUMNS, *TWO_HEADS):
        column.end(bench, NODES[0])
    bench.trouble.kills = 0
    bench.run(BACK_S)
    assert bench.is_up, "nothing keeps the head from starting"
    blows.heal(bench)
    bench.world.machines.refusals.clear()
