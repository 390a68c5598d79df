"""How fast a job is back: `python -m tests.bench.recovery [--runs N] [--plain-runs N] [--backend local] [--json FILE]`.

Four ways of being hurt under Steward, each N times on one cluster, and the same death under plain Slurm with its
default settings (`sbatch --requeue`; minutes a run, so fewer of them). Prints median, 95th percentile and the goal,
when each phase of the way came, and how many times faster than plain Slurm it is. A run that does not come back in
time counts as missed.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from steward_bed import beds
from steward_bed.bed import Backend, Bed, BedError, BedSpec
from steward_bed.beds import reset, stoppable, take_down
from steward_bed.layout import MANIFEST
from steward_bed.wait import NotInTime, open_cases, wait_until_empty
from tests.bench import way
from tests.bench.scenarios import SCENARIOS, Scenario, plain_requeue
from tests.bench.summary import Sample, as_json, as_table, ratio_line, summarize
from tests.e2e.story import Story

NODES = 6
_NO_LIMITS = {"repair": {"node_repairs": 100, "replacements_per_hour": 10000, "breaker_min": 100}}
"""The same node dies again and again here."""
_PLAIN_NODES = 5
_REPAIR_S = 60.0

Found = TypeVar("Found")

say = Console(stderr=True).print


def main() -> int:
    asked = arguments()
    samples = with_bed(spec_of(asked), lambda bed: runs_of(bed, SCENARIOS, asked.runs)) if asked.runs else []
    plain = with_bed(plain_of(asked), lambda bed: plain_runs(bed, asked.plain_runs)) if asked.plain_runs else []
    summaries = summarize(samples, plain)
    Console(width=110).print(as_table(summaries))
    for name in dict.fromkeys(sample.scenario for sample in samples):
        ways = [sample.way for sample in samples if sample.scenario == name and sample.way]
        Console(width=150).print(way.as_table(ways, f"{name}: seconds"))
    print(ratio_line(summaries))
    if asked.json:
        asked.json.write_text(json.dumps(as_json(samples, plain, summaries), indent=2) + "\n")
    return 0 if all(summary.is_good for summary in summaries) else 1


def spec_of(asked: argparse.Namespace) -> BedSpec:
    return BedSpec(
        dir=asked.bed or new_dir(),
        backend=Backend(asked.backend),
        nodes=NODES,
        slurm=asked.slurm,
        settings=_NO_LIMITS,
    )


def plain_of(asked: argparse.Namespace) -> BedSpec:
    return replace(spec_of(asked), dir=new_dir(), nodes=_PLAIN_NODES, steward=False, settings={})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each scenario under Steward")
    parser.add_argument("--plain-runs", type=int, default=2, help="under plain Slurm, about nine minutes each")
    parser.add_argument("--slurm", default="", help="version, for example 26.05 (docker)")
    parser.add_argument("--backend", choices=[each.value for each in Backend], default="local")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    add_bed(parser)
    return parser.parse_args()


def add_bed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bed", type=_up, metavar="DIR", help="use the one that is up in DIR, and leave it up")


def _up(text: str) -> Path:
    try:
        return beds.find(Path(text)).spec.dir
    except BedError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def new_dir() -> Path:
    return Path(tempfile.mkdtemp(prefix="steward-bench-", dir="/tmp"))


def with_bed(spec: BedSpec, measure: Callable[[Bed], Found]) -> Found:
    """Measure on a bed made for it, or on the one that is up in its directory already."""
    if (spec.dir / MANIFEST).exists():
        return measure(beds.find(spec.dir))
    bed = beds.make(spec)
    with stoppable():
        try:
            bed.up(say)
            return measure(bed)
        finally:
            take_down(bed, say)


def runs_of(bed: Bed, scenarios: Sequence[Scenario], runs: int) -> list[Sample]:
    return [one_run(bed, scenario, run) for scenario in scenarios for run in range(1, runs + 1)]


def one_run(bed: Bed, scenario: Scenario, run: int) -> Sample:
    if bed.spec.steward:
        wait_until_empty(
            "repairs are over, before the bed puts its machines in order", lambda: open_cases(bed), _REPAIR_S
        )
    reset(bed)
    story = Story(bed, Path(tempfile.mkdtemp(prefix="run-", dir=bed.shared)))
    story.dir.chmod(0o1777)
    try:
        found = scenario.measure(story)
    except NotInTime as error:
        say(f"{scenario.name} {run}: missed: {error}")
        return Sample(scenario=scenario.name, goal_s=scenario.goal_s, seconds=None)
    say(f"{scenario.name} {run}: {found.seconds:.3f} s")
    return Sample(scenario=scenario.name, goal_s=scenario.goal_s, seconds=found.seconds, way=found.way)


def plain_runs(bed: Bed, runs: int) -> list[float]:
    found: list[float] = []
    for run in range(1, runs + 1):
        reset(bed)
        found.append(plain_requeue(Story(bed, Path(tempfile.mkdtemp(prefix="plain-", dir=bed.shared)))))
        say(f"plain {run}: {found[-1]:.1f} s")
    return found


if __name__ == "__main__":
    sys.exit(main())
