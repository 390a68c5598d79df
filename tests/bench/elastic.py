"""What a change of size costs: `python -m tests.bench.elastic [--rounds N] [--requeues N] [--json FILE]`.

A run of four nodes on a local cluster. In each round one of its replica jobs gets SIGTERM, as Slurm sends it when it
preempts, and the run goes on with three; then it grows to four again. Each change is cut into its phases, from the
clocks of head and training, which are one machine's. The control path ends where the new processes begin: how long
those take to start is the training's own. Beside it, under plain Slurm: a job of the same training is requeued with
another number of nodes. Status 1 when the control path is slower than its goal, or a step was lost.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.demo.elastic import ELASTIC_NODES, ElasticScript, ElasticTraining, changes_of
from examples.demo.measure import Happening, last
from steward_bed.bed import Bed, BedSpec
from steward_bed.wait import ask_head, wait_until
from tests.bench.recovery import add_bed, new_dir, with_bed
from tests.bench.summary import percentile

GOAL_S = 0.5
LIMIT_S = 90.0
LASTS_S = 11.0
"""A growth that was given up sooner would make the next one wait."""
_OPTIONS = f"--elastic={ELASTIC_NODES},grace=20,settle=0,faulty=1,snooze=0,backoff=0"
_ENDLESS = ElasticScript(steps=10_000_000, sample_s=0.005)
PHASES: Mapping[str, str] = {
    "to save": "from the wish to the last rank's save: the rest of a step is in it",
    "to stop": "from there to the start of the new processes",
    "control path": "both",
    "process start": "the interpreter and its imports, until all ranks are connected",
    "first step": "the new size's first step",
    "in all": "from the wish to the first step's end",
}
say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One change, seconds by phase."""

    kind: str
    phases: Mapping[str, float]


def main() -> int:
    asked = _arguments()
    runs = asked.requeues
    samples, lost = with_bed(_spec(asked.bed, steward=True), lambda bed: _changes(bed, asked.rounds))
    requeues = with_bed(_spec(None, steward=False), lambda bed: _requeues(bed, runs)) if runs else []
    console = Console(width=110)
    for kind in dict.fromkeys(sample.kind for sample in samples):
        console.print(table(kind, [sample for sample in samples if sample.kind == kind]))
    control = percentile([sample.phases["control path"] for sample in samples], 95)
    print(f"control path {control:.2f} s p95, goal {GOAL_S} s; steps lost in {len(samples)} graceful changes: {lost}")
    if requeues:
        listed = ", ".join(f"{seconds:.0f}" for seconds in requeues)
        print(f"plain Slurm, requeue with another number of nodes, until its first step: {listed} s")
    if asked.json:
        told = {"samples": [{"kind": one.kind, **one.phases} for one in samples], "lost": lost, "requeues": requeues}
        asked.json.write_text(json.dumps(told, indent=2) + "\n")
    return 0 if control <= GOAL_S and lost == 0 else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="each one shrink and one growth")
    parser.add_argument("--requeues", type=int, default=1, help="under plain Slurm; three minutes each")
    parser.add_argument("--json", type=Path, default=None, help="also write the figures here")
    add_bed(parser)
    return parser.parse_args()


def _changes(bed: Bed, rounds: int) -> tuple[list[Sample], int]:
    """The changes of all rounds, and how many steps were lost in them."""
    training = ElasticTraining(bed, "bench", _ENDLESS)
    training.submit(_OPTIONS, sample_s=_ENDLESS.sample_s)
    _trains(training, ELASTIC_NODES, 0.0)
    samples = [sample for number in range(rounds) for sample in _round(bed, training, number)]
    run = next(one for one in ask_head(bed, "/v1/elastic") if one["run"] == training.job)
    return samples, sum(change.steps_lost for change in changes_of(run["events"], training.log()))


def _spec(given: Path | None, *, steward: bool) -> BedSpec:
    return BedSpec(dir=given or new_dir(), nodes=ELASTIC_NODES, steward=steward)


def _round(bed: Bed, training: ElasticTraining, number: int) -> list[Sample]:
    """One node is taken back and comes again."""
    grown_at = last(training.log(), "begun")
    wait_until("the growth has lasted", lambda: not grown_at or time.time() > grown_at.at + LASTS_S, LIMIT_S)
    jobs = bed.run(["squeue", "--noheader", "--states=RUNNING", "--format=%A %k"]).text.splitlines()
    replicas = [line.split()[0] for line in jobs if f"steward-elastic:{training.job}:" in line]
    signalled = time.time()
    bed.run(["scancel", "--signal=TERM", replicas[number % len(replicas)]])
    _trains(training, ELASTIC_NODES - 1, signalled)
    shrunk = time.time()
    _trains(training, ELASTIC_NODES, shrunk)
    grown = _event(bed, training, signalled, grows=True)
    left = _event(bed, training, signalled, grows=False)
    say(f"round {number + 1}: steps at {ELASTIC_NODES} nodes again")
    return [
        _sample("a node is taken back (SIGTERM)", signalled, left["saved_s"], training.log()),
        _sample("growth", grown["at"], grown["saved_s"], training.log()),
    ]


def _event(bed: Bed, training: ElasticTraining, since: float, *, grows: bool) -> Mapping[str, Any]:
    """The newest change of that kind, as the head remembers it once its first step is made."""

    def look() -> Mapping[str, Any] | None:
        run = next(one for one in ask_head(bed, "/v1/elastic") if one["run"] == training.job)
        fits = (one for one in run["events"] if one["at"] >= since and (one["after"] > one["before"]) is grows)
        return next((one for one in fits if one["saved_s"] is not None), None)

    found = wait_until("the head knows of the change", look, LIMIT_S)
    return found or {}


def _trains(training: ElasticTraining, size: int, after: float) -> None:
    def is_there() -> bool:
        begun = last(training.log(), "begun")
        return begun is not None and begun.at > after and training.size() == size

    wait_until(f"it trains on {size} nodes", is_there, LIMIT_S)


def _sample(kind: str, at: float, saved_s: float, log: Sequence[Happening]) -> Sample:
    begun = next(each for each in log if each.what == "begun" and each.at > at)
    step = next(each for each in log if each.what == "step" and each.at > begun.at)
    phases = {
        "to save": saved_s,
        "to stop": begun.born - at - saved_s,
        "control path": begun.born - at,
        "process start": begun.at - begun.born,
        "first step": step.at - begun.at,
        "in all": step.at - at,
    }
    return Sample(kind=kind, phases=phases)


def _requeues(bed: Bed, runs: int) -> list[float]:
    """Under plain Slurm: a job of two nodes gets three, seconds until its first step there."""
    return [_requeued(bed, number) for number in range(runs)]


def _requeued(bed: Bed, number: int) -> float:
    training = ElasticTraining(bed, f"requeued{number}", _ENDLESS)
    training.submit("--requeue", sample_s=_ENDLESS.sample_s, before="unset SLURM_NTASKS SLURM_NPROCS")
    _trains(training, 2, 0.0)
    asked = time.time()
    bed.run(["scontrol", "requeue", str(training.job)])
    # `numnodes=3` alone is the least: the most, which sbatch has set to two, would stay
    bed.run(["scontrol", "update", f"jobid={training.job}", "numnodes=3-3", "numtasks=3"])
    first = wait_until("it makes a step on three nodes", lambda: _first(training, 3, asked), 600.0)
    bed.run(["scancel", str(training.job)])
    return first.at - asked if first else float("nan")


def _first(training: ElasticTraining, size: int, after: float) -> Happening | None:
    """The first step at that size."""
    log = training.log()
    begun = next((each for each in log if each.what == "begun" and each.at > after), None)
    if begun is None or begun.facts["world"] != size:
        return None
    return next((each for each in log if each.what == "step" and each.at > begun.at), None)


def table(kind: str, samples: Sequence[Sample]) -> Table:
    made = Table(title=f"{kind}: {len(samples)} times, seconds", title_justify="left")
    for head in ("phase", "median", "95 %", "what it is"):
        made.add_column(head, justify="left" if head in ("phase", "what it is") else "right", no_wrap=True)
    for phase, text in PHASES.items():
        values = [sample.phases[phase] for sample in samples]
        made.add_row(phase, f"{percentile(values, 50):.2f}", f"{percentile(values, 95):.2f}", text)
    return made


if __name__ == "__main__":
    sys.exit(main())
