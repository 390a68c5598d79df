"""What looks at a real Slurm cost, as text and as JSON, whole and narrow: `tests.bench.slurm_answers --real` runs it.

Each Slurm has thousands of nodes without a machine (DOWN, in a partition of their own) and held jobs. A figure is the
least of some tries: wall time, and processor time of the commands and of this process.
"""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steward.adapters.slurm import records
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.commands import MAX_BYTES, Commands
from steward.model.ids import JobId, NodeName
from steward.model.mark import Mark
from tests.contract import cluster
from tests.contract.conftest import wrappers
from tests.contract.installed import version

_TRIES = 3
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_MARK = Mark(check="bench", action="drain", id="c1")
_BATCH = 750


def roots() -> list[Path]:
    return [Path("/"), *(Path(root) for root in os.environ.get("STEWARD_SLURM_ROOTS", "").split(":") if root)]


def table(nodes: int, jobs: int) -> list[dict[str, Any]]:
    return [row for root in roots() for row in _of(root, nodes, jobs)]


def _of(root: Path, nodes: int, jobs: int) -> Iterator[dict[str, Any]]:
    names = f"x[00001-{nodes:05d}]"
    more = f"NodeName={names} NodeAddr=127.0.0.1 Port=9 CPUs=4 RealMemory=500 Gres=gpu:8 Feature=a,b State=DOWN\n"
    more += f"PartitionName=big Nodes={names} State=UP\nMaxJobCount={jobs + 1000}\n"
    with cluster.running(root=root, extra=more) as made, _commands_of(root):
        _submit(made, jobs)
        for name, (wall, spent) in _figures(made).items():
            yield {"slurm": version(root), "what": name, "wall_s": round(wall, 3), "cpu_s": round(spent, 3)}


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


def _submit(made: cluster.Cluster, jobs: int) -> None:
    each = f"sbatch -H -o /dev/null -D {made.folder} -J train-$i -x n$((i % 3 + 1)) --wrap true >/dev/null"
    script = f"i=0; while [ $i -lt {jobs} ]; do {each}; i=$((i+1)); done"
    subprocess.run([*made.prefix, "sh", "-c", script], env={**os.environ, **made.env}, check=True)


def _figures(made: cluster.Cluster) -> dict[str, tuple[float, float]]:
    conf = made.env["SLURM_CONF"]
    json, slurm = Commands(conf=conf, timeout_s=60.0, max_bytes=MAX_BYTES), CommandLineSlurm(conf=conf, timeout_s=60.0)
    asked = slurm.version()
    batch = [NodeName(f"x{number:05d}") for number in range(1, _BATCH + 1)]
    drained = {
        "nodes as JSON": _least(lambda: records.nodes(json.read(*asked.read_nodes))),
        "nodes as text, first": _least(lambda: CommandLineSlurm(conf=conf, timeout_s=60.0).nodes()),
        "nodes as text, again": _least(slurm.nodes),
        "750 nodes": _least(lambda: slurm.nodes(batch)),
        "1 node": _least(lambda: slurm.nodes(batch[:1])),
        "drain 750 nodes": _least(lambda: slurm.drain(dict.fromkeys(batch, _MARK))),
    }
    every = sorted(slurm.jobs())
    return {
        **drained,
        "jobs as JSON": _least(lambda: records.jobs(json.read(*asked.read_jobs))),
        "jobs as text, again": _least(slurm.jobs),
        "1 job": _least(lambda: slurm.jobs(every[:1])),
        "4 jobs": _least(lambda: slurm.jobs(every[:4])),
        "100 jobs": _least(lambda: slurm.jobs(every[:100])),
        "jobs on a node": _least(lambda: slurm.jobs([], on=[NodeName("n1")])),
        "a job that is gone": _least(lambda: slurm.jobs([JobId(10**6)])),
    }


def _least(look: Callable[[], object]) -> tuple[float, float]:
    return min(_once(look) for _ in range(_TRIES))


def _once(look: Callable[[], object]) -> tuple[float, float]:
    began, spent = time.perf_counter(), _spent()
    look()
    return time.perf_counter() - began, _spent() - spent


def _spent() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in each)
