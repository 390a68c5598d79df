"""What the size of a site costs: `python -m tests.bench.scale [--nodes N,...] [--jobs N,...] [--runs N] [--json FILE]`.

The first size is the first of --nodes with the first of --jobs, and so on; the last of a shorter list stands for all
that follow. Each size is a real slurmctld with so many nodes (six of them have a machine) and so many jobs in its
queue. At each size a node of an opted-in job is killed again and again, while new jobs come where others are; and it is
measured what the head costs while nothing happens, how long people wait, and what a step that does nothing takes by
Slurm alone. The table has every figure, and how many times the first size's it is.
`--phases` prints the way from the fault to the tasks, phase by phase.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

from rich.console import Console

from steward_bed.bed import Backend, Bed
from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from steward_bed.wait import NotInTime, open_cases, wait_until_empty
from tests.bench import scale_bed, scale_summary, way
from tests.bench.recovery import add_bed, new_dir, with_bed
from tests.bench.scale_summary import Size
from tests.bench.scenarios import running_step, tasks_of_attempt
from tests.bench.way import Way
from tests.e2e.story import Story

_NO_LIMITS = {"repair": {"node_repairs": 100, "replacements_per_hour": 10000, "breaker_min": 100}}
_SETTLE_S, _BACK_S = 120.0, 120.0
_SHOWN = 600
_PAGES = ("/", "/v1/status", "/v1/nodes", "/v1/jobs", "/v1/cases")

say = Console(stderr=True).print


def main() -> int:
    asked = arguments()
    sizes: list[Size] = []
    for nodes, group in groupby(sizes_of(asked), key=lambda size: size[0]):
        sizes += of_nodes(nodes, [jobs for _, jobs in group], asked)
    Console(width=max(110, 40 + 18 * len(sizes))).print(scale_summary.as_table(sizes))
    for size in sizes if asked.phases else ():
        Console(width=130).print(way.as_table(size.ways, f"from the fault to the tasks, seconds: {size.name}"))
    if asked.json:
        asked.json.write_text(json.dumps(scale_summary.as_json(sizes), indent=2) + "\n")
    missed = scale_summary.misses(sizes)
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=_numbers, default=[6, 6, 1000, 10000], metavar="N,...")
    parser.add_argument("--jobs", type=_numbers, default=[0, 2000, 2000, 5000], metavar="N,...")
    parser.add_argument("--runs", type=int, default=10, help="nodes killed at each size")
    parser.add_argument("--new-jobs", type=int, default=20, help="a minute, where jobs are, while nodes are killed")
    parser.add_argument("--quiet-s", type=float, default=30.0, help="how long the idle head is watched")
    parser.add_argument("--settle-s", type=float, default=10.0, help="how long nothing happens before that")
    parser.add_argument("--phases", action="store_true", help="also the way from the fault to the tasks")
    parser.add_argument("--slurm", default="", help="version, for example 26.05 (docker)")
    parser.add_argument("--backend", choices=[each.value for each in Backend], default="local")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    add_bed(parser)
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def sizes_of(asked: argparse.Namespace) -> list[tuple[int, int]]:
    many = max(len(asked.nodes), len(asked.jobs))
    nodes, jobs = (each + each[-1:] * (many - len(each)) for each in (asked.nodes, asked.jobs))
    return list(zip(nodes, jobs, strict=True))


def of_nodes(nodes: int, jobs: list[int], asked: argparse.Namespace) -> list[Size]:
    """Of one cluster, whose queue grows."""

    def measure(bed: Bed) -> list[Size]:
        found, there = list[Size](), 0
        for many in jobs:
            scale_bed.fill(bed, many - there)
            there = max(there, many)
            found.append(one_size(bed, nodes, many, asked))
        return found

    spec = scale_bed.spec_of(
        nodes, asked.bed or new_dir(), backend=asked.backend, slurm=asked.slurm, settings=_NO_LIMITS
    )
    return with_bed(spec, measure)


def one_size(bed: Bed, nodes: int, jobs: int, asked: argparse.Namespace) -> Size:
    say(f"{nodes:,} nodes, {jobs:,} jobs")
    rested(bed)
    step_s = scale_bed.step_s(bed)
    come = asked.new_jobs if jobs else 0
    with scale_bed.new_jobs(bed, come):
        took = [recovery(bed, run) for run in range(1, asked.runs + 1)]
    try:
        rested(bed)
    except NotInTime as error:
        say(f"not at rest: {str(error)[:_SHOWN]}")
    quiet = scale_bed.watch_quiet(bed, asked.quiet_s, settle_s=asked.settle_s)
    say(f"idle: {quiet.idle_percent:.1f} % of a core, {quiet.rss_mib:.0f} MiB, {quiet.rpcs_per_s:.2f} calls a second")
    size = Size(
        nodes=nodes,
        jobs=jobs,
        new_jobs=come,
        recoveries=tuple(each["tasks"] if each else None for each in took),
        idle_percent=quiet.idle_percent,
        rss_mib=quiet.rss_mib,
        rpcs=quiet.rpcs,
        status_s=tuple(scale_bed.status_s(bed)),
        pages_s={path: tuple(scale_bed.page_s(bed, path)) for path in _PAGES},
        drain_s=scale_bed.drain_s(bed),
        step_s=tuple(step_s),
        ways=tuple(each for each in took if each),
    )
    say(f"steward status: {statistics.median(size.status_s):.2f} s")
    return size


def rested(bed: Bed) -> None:
    wait_until_empty("repairs are over", lambda: open_cases(bed), _SETTLE_S, every_s=0.2)
    reset(bed, but=scale_bed.OF_OTHERS)
    scale_bed.await_calls(bed)


def recovery(bed: Bed, run: int) -> Way | None:
    """One node killed under an opted-in job, a spare inside; None: the tasks did not run again in time. The time counts
    from the end of the fault command, which itself takes longer on a busy machine."""
    story = Story(bed, Path(tempfile.mkdtemp(prefix="run-", dir=bed.shared)))
    story.dir.chmod(0o1777)
    try:
        rested(bed)
        hurt = running_step(story)
        story.hurt(FaultKind.KILL_NODE, hurt.node)
        fault = time.time()
        tasks = tasks_of_attempt(story, 2, _BACK_S)
    except NotInTime as error:
        say(f"kill {run}: missed: {str(error)[:_SHOWN]}")
        return None
    took = way.way_of(bed.logs(), node=hurt.node, job=hurt.job, fault=fault, tasks=tasks)
    say(f"kill {run}: " + ", ".join(f"{name} {after:.2f}" for name, after in took.items()))
    return took


if __name__ == "__main__":
    sys.exit(main())
