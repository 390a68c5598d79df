"""Slurm's own test against what Slurm then does: `python -m tests.bench.fits [--pairs N] [--seed N] [--json FILE]`.

One bed of plain Slurm, cut into small clusters of four unlike nodes each. In each of them jobs run, nodes are drained,
and a held job of random wishes is asked about (`SlurmPort.fits`: nodes, tasks, CPUs, memory, GRES with types, features,
named and excluded nodes, licences, kept nodes). Then it is released, and Slurm starts it or not; where it does not, all
that runs is cancelled, and Slurm starts it then or never. Goal: the same in 99.9 %, of 10,000 pairs. (Limits of
partitions, accounts and QOS are not in the test: the reason of a waiting job tells them.)
"""

import argparse
import itertools
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.fits import FitAsker
from steward.model.fit import Fit, FitState, Question
from steward.model.ids import JobId, NodeName
from steward.model.reservation import keep_name
from steward_bed.bed import Bed, BedSpec
from steward_bed.wait import NotInTime, wait_until
from tests.bench.recovery import new_dir, with_bed
from tests.bench.stops import Watch

GOAL = 0.999
KINDS = (
    "CPUs=8 RealMemory=4000 Gres=gpu:l4:2 Feature=l4,small",
    "CPUs=16 RealMemory=8000 Gres=gpu:a100:4 Feature=a100,big",
    "CPUs=8 RealMemory=4000 Feature=small",
    "CPUs=32 RealMemory=16000 Feature=big",
)
_CELL = len(KINDS)
_MOST_CELLS = 20
_LICENSES, _MOST_RUNNING = 3, 4
_LOOK_S, _HELD_S, _PATIENCE_S = 0.25, 300.0, 20.0
_PASSES_S = 3.0
"""Slurm looks once a second: what has not started by then, does not."""
_CONF = """SchedulerParameters=batch_sched_delay=0,bf_interval=2
MinJobAge=10
MessageTimeout=60
TCPTimeout=20
Licenses={licenses}
{partitions}"""

say = Console(stderr=True, markup=False).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One question: the job's wishes, what Slurm's test said, and what Slurm did (`now`, `later`, `never`)."""

    wishes: str
    around: str
    said: str
    did: str

    @property
    def is_right(self) -> bool:
        return self.said == self.did


@dataclass(slots=True, kw_only=True)
class Cell:
    """A partition of four unlike nodes."""

    number: int
    watch: Watch
    port: CommandLineSlurm
    dice: random.Random
    running: list[int] = field(default_factory=list)
    drained: str = ""

    @property
    def name(self) -> str:
        return f"cell{self.number}"

    @property
    def nodes(self) -> list[str]:
        return [f"n{self.number * _CELL + at}" for at in range(1, _CELL + 1)]

    def run(self, *argv: str, check: bool = True) -> str:
        return self.watch.bed.run([*argv], check=check, timeout_s=60).text

    def all_respond(self) -> bool:
        return "*" not in self.run("sinfo", "--noheader", "--Node", f"--partition={self.name}", "--format=%t")

    def state(self, job: int) -> str:
        return self.watch.word(job, "JobState")


def wishes(cell: Cell) -> list[str]:
    """What a job asks for; Slurm refuses some of them at submission."""
    dice, found = cell.dice, list[str]()
    found += [f"-N{dice.choice(['1', '1', '2', '2', '3', '4', '1-3', '2-4'])}"]
    found += dice.choice([[], [f"-n{dice.randint(1, 24)}"], [f"--ntasks-per-node={dice.randint(1, 8)}"]])
    found += dice.choice([[], [], [f"-c{dice.choice([1, 2, 4, 8, 16])}"]])
    found += dice.choice([[], [], [], ["--exclusive"]])
    found += dice.choice([[], [], [f"--mem={dice.choice([500, 2000, 4000, 8000, 16000])}"], ["--mem-per-cpu=400"]])
    found += dice.choice([[], [], [], *_gpus(dice)])
    found += dice.choice([[], [], [], [f"-C{dice.choice(['big', 'small', 'l4|a100', 'big&a100', '[l4|a100]'])}"]])
    found += dice.choice([[], [], [], [f"-w{dice.choice(cell.nodes)}"], ["--contiguous"], ["--spread-job"]])
    found += dice.choice([[], [], [], [f"-Llic{cell.number}:{dice.randint(1, _LICENSES)}"]])
    found += [f"-t{dice.choice([10, 30, 60])}"]
    return found


def _gpus(dice: random.Random) -> list[list[str]]:
    count, kind = dice.randint(1, 4), dice.choice(["", "l4:", "a100:"])
    return [[f"--gres=gpu:{kind}{count}"], [f"--gpus={kind}{count}"], [f"--gpus-per-task={kind}1"]]


def submit(cell: Cell) -> tuple[int, str]:
    """A held job and its wishes; those that Slurm refuses at once are drawn again."""
    while True:
        asked = wishes(cell)
        argv = ["sbatch", "--parsable", "--hold", f"-p{cell.name}", "-o/dev/null", *asked, "--wrap=sleep 7200"]
        if (told := cell.run(*argv, check=False).split(";")[0].strip()).isdigit():
            return int(told), " ".join(asked)


def ask(cell: Cell, question: Question) -> Fit:
    """The answer while all nodes respond: Slurm's test leaves out those that it misses for a moment."""
    while True:
        wait_until("every node responds", cell.all_respond, 120, every_s=0.5)
        fit = cell.port.fits(question)
        if cell.all_respond():
            return fit


def one_pair(cell: Cell) -> Pair | None:
    """None: Slurm refuses to exclude the nodes, as from a job that its partition can never hold."""
    job, asked = submit(cell)
    without = frozenset(NodeName(name) for name in cell.dice.sample(cell.nodes, cell.dice.choice([0, 0, 0, 1, 2])))
    kept = keep_name(JobId(job)) if cell.dice.random() < 0.15 else ""
    if kept:
        cell.port.keep_nodes(kept, [NodeName(name) for name in cell.dice.sample(cell.nodes, 2)], _HELD_S)
    fit = ask(cell, Question(job=JobId(job), without=without, reservation=kept))
    around = f"{len(cell.running)} run, drained {cell.drained or '-'}, without {','.join(sorted(without)) or '-'}"
    around += ", some kept for it" if kept else ""
    if kept:
        cell.port.free_nodes(kept)
    if without:
        cell.run("scontrol", "update", f"jobid={job}", f"excnodelist={','.join(sorted(without))}", check=False)
        if cell.run("squeue", "--noheader", "--format=%x", f"--jobs={job}").strip() in ("", "(null)"):
            end(cell, job)
            return None
    did = _did(cell, job)
    return Pair(wishes=asked, around=around, said=fit.state.value, did=did)


def _did(cell: Cell, job: int) -> str:
    """Release the job; return when Slurm starts it, and leave it running or cancel it."""
    cell.run("scontrol", "release", str(job), check=False)  # refused where the partition can never hold it
    if _starts(cell, job):
        if len(cell.running) < _MOST_RUNNING and cell.dice.random() < 0.7:
            cell.running.append(job)
        else:
            clear(cell, job)
        return FitState.NOW.value
    end(cell, *cell.running)
    cell.running = []
    did = FitState.LATER if _starts(cell, job) else FitState.NEVER
    clear(cell, job)
    return did.value


def _starts(cell: Cell, job: int) -> bool:
    try:
        wait_until("it runs", lambda: cell.state(job) == "RUNNING", _PASSES_S, every_s=0.05)
    except NotInTime:
        return False
    return True


def end(cell: Cell, *jobs: int) -> None:
    """Cancel the jobs and wait until their nodes are free."""
    if jobs:
        cell.run("scancel", *map(str, jobs))
        over = ("CANCELLED", "FAILED", "COMPLETED", "TIMEOUT")
        wait_until("they are over", lambda: all(cell.state(one) in over for one in jobs), 60, every_s=0.05)


def clear(cell: Cell, job: int) -> None:
    """End the job, now and then all that runs beside it, and drain another node."""
    end(cell, job)
    if cell.dice.random() < 0.5:
        end(cell, *cell.running)
        cell.running = []
        if cell.drained:
            cell.run("scontrol", "update", f"nodename={cell.drained}", "state=resume")
        cell.drained = cell.dice.choice([*cell.nodes, "", "", "", ""])
        if cell.drained:
            cell.run("scontrol", "update", f"nodename={cell.drained}", "state=drain", "reason=test")


def measure(bed: Bed, pairs: int, seed: int) -> list[Pair]:
    conf, watch = bed.env["SLURM_CONF"], Watch(bed, look_s=_LOOK_S)
    port = CommandLineSlurm(conf=conf, timeout_s=60.0, asker=FitAsker(conf=conf, patience_s=_PATIENCE_S))
    threading.Thread(target=watch.run, daemon=True).start()
    cells = [
        Cell(number=number, watch=watch, port=port, dice=random.Random(f"{seed}-{number}"))
        for number in range(bed.spec.nodes // _CELL)
    ]
    left, done = itertools.count(1), list[Pair]()

    def work(cell: Cell) -> None:
        while next(left) <= pairs:
            if (pair := one_pair(cell)) is None:
                continue
            done.append(pair)
            if not pair.is_right:
                say(f"{cell.name}: {pair}")

    began = time.monotonic()
    with ThreadPoolExecutor(len(cells)) as workers:
        for each in [workers.submit(work, cell) for cell in cells]:
            each.result()
    say(f"{len(done)} pairs in {time.monotonic() - began:.0f} s")
    watch.over.set()
    return done


def spec_of(pairs: int) -> BedSpec:
    cells = min(_MOST_CELLS, max(1, pairs // 4))
    licenses = ",".join(f"lic{number}:{_LICENSES}" for number in range(cells))
    partitions = "\n".join(
        f"PartitionName=cell{number} Nodes=n[{number * _CELL + 1}-{number * _CELL + _CELL}] State=UP DefMemPerCPU=100"
        for number in range(cells)
    )
    conf = _CONF.format(licenses=licenses, partitions=partitions)
    return BedSpec(dir=new_dir(), nodes=cells * _CELL, hardware=";".join(KINDS), slurm_conf=conf, steward=False)


def report(found: Sequence[Pair]) -> dict[str, float]:
    known = [pair for pair in found if pair.said != FitState.UNKNOWN.value]
    wrong = [pair for pair in known if not pair.is_right]
    for pair in wrong:
        print(f"said {pair.said}, did {pair.did}: {pair.wishes} ({pair.around})")
    for pair in found:
        if pair.said == FitState.UNKNOWN.value:
            print(f"unknown: {pair.wishes} ({pair.around})")
    print("; ".join(f"{said} and {did}: {count}" for (said, did), count in sorted(_table(found).items())))
    return {
        "pairs": len(found),
        "unknown": len(found) - len(known),
        "wrong": len(wrong),
        "right": 1.0 - len(wrong) / len(known) if known else 0.0,
    }


def _table(found: Sequence[Pair]) -> Counter[tuple[str, str]]:
    return Counter((pair.said, pair.did) for pair in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the pairs here")
    asked = parser.parse_args()
    found = with_bed(spec_of(asked.pairs), lambda bed: measure(bed, asked.pairs, asked.seed))
    figures = report(found)
    print(json.dumps(figures))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(pair) for pair in found], indent=1) + "\n")
    return 0 if figures["right"] >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
