"""The state that an earlier Steward left in the middle of its work, and a head of today that goes on with it.

Recorded on the commit that the folder names, with that commit's own code: `python -m tests.chaos.earlier FOLDER` there.
A recording is never made anew: it is what a site's head wrote before it was upgraded.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.chaos.bench import Bench
from tests.chaos.columns import Column
from tests.chaos.matrix import flow_of

FOLDER = Path(__file__).parents[1] / "recordings" / "state"
CELLS = (
    ("case", "provision"),
    ("case of a dead node", "launch"),
    ("resume in place", "shim asks"),
    ("requeue", "requeued"),
    ("requeue", "runs again"),
    ("rolling update", "provision"),
    ("gate change", "closed"),
    ("deep check", "running"),
)
"""A repair, a step whose failure waits for its answer, a job that comes back, groups that change, a closed gate."""
_REACH_S = 120.0


def recordings() -> list[str]:
    return sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())


def file_of(recording: str, flow: str, step: str) -> Path:
    return FOLDER / recording / f"{flow}, {step}.sql".replace(" ", "-").replace(",", "")


def upgraded_from(state: Path) -> Column:
    """The head is stopped, and one of today starts on the file of the earlier one."""

    def begin(bench: Bench, node: str) -> None:
        bench.disk.close()
        for file in bench.folder.glob("steward.db*"):
            file.unlink()
        with closing(sqlite3.connect(bench.disk.file)) as made:
            made.executescript(state.read_text(encoding="utf-8"))
        bench.trouble.bite()
        bench.restart()

    return Column(name="head upgraded", begin=begin, lasts_s=0.0)


def take(flow_name: str, step: str) -> Iterator[str]:
    """The SQL that makes the file of a head that is at this step."""
    flow = flow_of(flow_name)
    bench = flow.make()
    try:
        flow.begin(bench)
        until = bench.elapsed + _REACH_S
        while not flow.steps[step](bench):
            if bench.elapsed > until:
                raise SystemExit(f"{flow_name} never came to {step}")
            bench.run(0.1)
        bench.disk.close()
        with closing(sqlite3.connect(bench.disk.file)) as made:
            yield from made.iterdump()
    finally:
        bench.close()


if __name__ == "__main__":
    (FOLDER / sys.argv[1]).mkdir(parents=True)
    for cell in CELLS:
        text = "".join(f"{line}\n" for line in take(*cell))
        file_of(sys.argv[1], *cell).write_text(text, encoding="utf-8")
