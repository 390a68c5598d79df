"""Many faults in a row on one cluster: `python -m tests.bench.soak [--faults N] [--every N] [--json FILE]`.

A node of an opted-in job is killed again and again. After every so many faults a line tells how long the last ones
took, the memory of the head and the rows of its store. Slurm's MinJobAge is its default, so that ended jobs come and
go. Goal: the last line's times and memory are at most 1.2 times those of the second line (the first one has cold
caches).
"""

import argparse
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from steward_bed.bed import Bed, BedSpec
from steward_bed.layout import Layout
from tests.bench import scale, scale_bed
from tests.bench.recovery import add_bed, new_dir, with_bed
from tests.bench.summary import percentile

GOAL_TIMES = 1.2
_TABLES = ("memory", "journal", "events", "ledger")
_REPAIR = {"node_repairs": 100, "node_repairs_window_h": 0.1, "replacements_per_hour": 10_000, "breaker_min": 10_000}
_NO_LIMITS = {"repair": _REPAIR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """After so many faults: of those since the line before, seconds; the head's memory; rows of its store."""

    faults: int
    p50_s: float
    p95_s: float
    missed: int
    rss_mib: float
    rows: dict[str, int]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_bed(parser)
    asked = parser.parse_args()
    spec = BedSpec(dir=asked.bed or new_dir(), settings=_NO_LIMITS)
    lines = with_bed(spec, lambda bed: soak(bed, asked.faults, asked.every))
    Console(width=110).print(as_table(lines))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(line) for line in lines], indent=2) + "\n")
    return 0 if is_level(lines) else 1


def soak(bed: Bed, faults: int, every: int) -> list[Line]:
    lines = list[Line]()
    for first in range(0, faults, every):
        last = min(first + every, faults)
        took = [scale.recovery(bed, fault + 1) for fault in range(first, last)]
        back = [each["tasks"] for each in took if each is not None]
        lines.append(
            Line(
                faults=last,
                p50_s=percentile(back, 50),
                p95_s=percentile(back, 95),
                missed=len(took) - len(back),
                rss_mib=scale_bed.memory_mib(bed),
                rows=rows(Layout(root=bed.spec.dir).controller / "stewardd" / "steward.db"),
            )
        )
        scale.say(str(lines[-1]))
    return lines


def rows(file: Path) -> dict[str, int]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
        return {table: store.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES}


def is_level(lines: list[Line]) -> bool:
    """Whether the last line is about as good as the second."""
    before, after = lines[min(1, len(lines) - 1)], lines[-1]
    return after.p50_s <= GOAL_TIMES * before.p50_s and after.rss_mib <= GOAL_TIMES * before.rss_mib


def as_table(lines: list[Line]) -> Table:
    table = Table()
    for head in ("faults", "p50, s", "p95, s", "missed", "memory, MiB", *_TABLES):
        table.add_column(head, justify="right")
    for line in lines:
        counts = (str(line.rows[name]) for name in _TABLES)
        shown = (f"{line.p50_s:.2f}", f"{line.p95_s:.2f}", str(line.missed), f"{line.rss_mib:.0f}")
        table.add_row(str(line.faults), *shown, *counts)
    return table


if __name__ == "__main__":
    sys.exit(main())
