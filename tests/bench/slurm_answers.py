"""What looks at a real Slurm cost, through steward-slurm and through its commands, in one table:
`python -m tests.bench.slurm_answers [--nodes N] [--jobs N] [--json FILE]` (10,000 and 10,000).

Each Slurm (the installed one, and those of STEWARD_SLURM_ROOTS) has that many nodes without a machine (DOWN, in a
partition of their own) and held jobs. A figure is the least wall time of some tries. Exits with 1 where one through
steward-slurm is over its goal.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import JobId, NodeName
from tests.contract import cluster
from tests.contract.conftest import library_of, wrappers
from tests.contract.installed import version

GOALS_S = {
    "all, little changed": 0.1,
    "all, nothing changed": 0.01,
    "1 node": 0.002,
    "1 job": 0.002,
    "100 new jobs": 0.1,
}
_PLAIN = 100
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_ROADS = ("steward-slurm", "commands")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    slurm: str
    look: str
    seconds: dict[str, float]

    def __str__(self) -> str:
        goal = GOALS_S.get(self.look)
        told = "".join(f"{self.seconds[road] * 1e3:12.1f} ms" for road in _ROADS)
        return f"{self.slurm:8} {self.look:22}{told}{f'   goal {goal * 1e3:g} ms' if goal else ''}"

    @property
    def is_met(self) -> bool:
        return self.seconds[_ROADS[0]] <= GOALS_S.get(self.look, float("inf"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--tries", type=int, default=5, help="of each look")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows = [row for root in _roots() for row in _of(root, asked.nodes, asked.jobs, asked.tries)]
    print(f"{'':31}" + "".join(f"{road:>15}" for road in _ROADS))
    print("\n".join(map(str, rows)))
    if asked.json:
        asked.json.write_text(json.dumps([{"slurm": r.slurm, "look": r.look, "seconds": r.seconds} for r in rows]))
    return 0 if all(row.is_met for row in rows) else 1


def _roots() -> list[Path]:
    return [Path("/"), *(Path(root) for root in os.environ.get("STEWARD_SLURM_ROOTS", "").split(":") if root)]


def _of(root: Path, nodes: int, jobs: int, tries: int) -> Iterator[Row]:
    names = f"x[00001-{nodes:05d}]"
    more = f"NodeName={names} NodeAddr=127.0.0.1 Port=9 CPUs=4 RealMemory=500 Gres=gpu:8 Feature=a,b State=DOWN\n"
    more += f"PartitionName=big Nodes={names} State=UP\nMaxJobCount={jobs + 1000}\nMaxNodeCount={nodes + 100}\n"
    more += f"MaxArraySize={jobs + 1000}\n"
    with cluster.running(root=root, extra=more) as made, _commands_of(root), ExitStack() as stack:
        _fill(made, jobs)
        library = stack.enter_context(closing(library_of(made)))
        conf = made.env["SLURM_CONF"]
        ports = {
            _ROADS[0]: CommandLineSlurm(conf=conf, timeout_s=60.0, library=library),
            _ROADS[1]: CommandLineSlurm(conf=conf, timeout_s=60.0),
        }
        figures = {road: _figures(made, port, tries) for road, port in ports.items()}
        for look in figures[_ROADS[0]]:
            yield Row(slurm=version(root), look=look, seconds={road: figures[road][look] for road in _ROADS})
        assert not library.problem(), library.problem()


@contextmanager
def _commands_of(root: Path) -> Iterator[None]:
    before = os.environ["PATH"]
    with TemporaryDirectory() as folder:
        if root != Path("/"):
            os.environ["PATH"] = f"{wrappers(Path(folder), root)}:{_PATH}"
        try:
            yield
        finally:
            os.environ["PATH"] = before


def _fill(made: cluster.Cluster, jobs: int) -> None:
    """Have so many held jobs, each with a record of its own: tasks of one array, which Slurm splits when it is told of
    some of them; so many calls of sbatch would take many minutes."""
    tasks = max(jobs - _PLAIN, 2)
    array = f"sbatch -H --parsable -o /dev/null -D {made.folder} -J train --array=1-{tasks} --wrap true"
    split = f'scontrol update jobid="$({array})_[1-{max(tasks - 1, 1)}]" comment=own'
    subprocess.run([*made.prefix, "sh", "-ec", split], env={**os.environ, **made.env}, check=True)
    _submit(made, _PLAIN)  # of a task slurmctld tells with the whole array


def _submit(made: cluster.Cluster, jobs: int) -> None:
    each = f"sbatch -H -o /dev/null -D {made.folder} -J train-$i -x n$((i % 3 + 1)) --wrap true >/dev/null"
    script = f"i=0; while [ $i -lt {jobs} ]; do {each}; i=$((i+1)); done"
    subprocess.run([*made.prefix, "sh", "-c", script], env={**os.environ, **made.env}, check=True)


def _figures(made: cluster.Cluster, port: CommandLineSlurm, tries: int) -> dict[str, float]:
    def everything() -> Any:
        return port.nodes(), port.jobs()

    least = partial(_least, tries=tries)
    first = _once(everything)
    every = sorted(id for id, job in port.jobs().items() if job.is_pending)[-_PLAIN:]
    few = [NodeName(f"x{number:05d}") for number in range(1, 5)]

    def changed(number: int) -> None:
        made.run("scontrol", "update", f"nodename={few[0]}", f"reason=r{number}", "state=down")
        made.run("scontrol", "update", f"jobid={every[0]}", f"comment=r{number}")

    def new(number: int) -> None:
        _submit(made, 100)

    return {
        "all, first": first,
        "all, little changed": least(everything, before=changed),
        "all, nothing changed": least(everything, before=lambda _: time.sleep(2.5)),
        "1 node": least(lambda: port.nodes(few[:1])),
        "4 nodes": least(lambda: port.nodes(few)),
        "1 job": least(lambda: port.jobs(every[:1])),
        "4 jobs": least(lambda: port.jobs(every[:4])),
        "100 jobs": least(lambda: port.jobs(every[:100])),
        "a job that is gone": least(lambda: port.jobs([JobId(10**6)])),
        "the jobs on a node": least(lambda: port.jobs([], on=[NodeName("n1")])),
        "partitions": least(port.partitions),
        "100 new jobs": _least(port.jobs, before=new, tries=min(tries, 2)),
    }


def _least(look: Callable[[], object], before: Callable[[int], object] = abs, *, tries: int) -> float:
    found = []
    for number in range(tries):
        before(number)
        found.append(_once(look))
    return min(found)


def _once(look: Callable[[], object]) -> float:
    began = time.perf_counter()
    look()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
