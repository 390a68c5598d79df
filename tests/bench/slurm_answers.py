"""What reading a long queue costs the head: `python -m tests.bench.slurm_answers [--jobs N] [--cores N] [--json FILE]`,
and with `--real [--nodes N] [--jobs N]` what looks at a real Slurm cost, as text and JSON, whole and narrow.

Each row is the recorded answer of one Slurm, grown to 10,000 running jobs on nodes of 128 cores, and taken through the
real reader by a process of its own: what Slurm's command itself takes is not in it. `cores` is an answer with every
detail, for which we do not ask. Goals for all others: no other thread (those that hear agents are such) waits longer
than 0.25 s, and memory stays below two and a half times the text.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steward.adapters.process import run
from steward.adapters.slurm import records
from steward.adapters.slurm.commands import MAX_BYTES
from tests.bench import slurm_reads

GOAL_PAUSE_S, GOAL_TIMES = 0.25, 2.5
_LIMIT_S = 10.0
_RECORDINGS = Path(__file__).parents[1] / "recordings"
_MB = 1e6


@dataclass(slots=True)
class Pauses:
    """The longest time in which this thread, which only sleeps, had no turn."""

    longest_s: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.over.is_set():
            before = time.perf_counter()
            time.sleep(0.002)
            self.longest_s = max(self.longest_s, time.perf_counter() - before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--cores", type=int, default=128)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--nodes", type=int, default=10_000)
    asked = parser.parse_args()
    if asked.real:
        looks = slurm_reads.table(asked.nodes, asked.jobs)
        print(
            "\n".join(
                f"{each['slurm']:8} {each['what']:22} {each['wall_s']:7} s {each['cpu_s']:7} s cpu" for each in looks
            )
        )
        if asked.json:
            asked.json.write_text(json.dumps(looks))
        return 0
    rows = [
        row("22.05.8", asked.jobs, lambda job: with_used_cores(job, asked.cores)),
        row("24.11.5", asked.jobs, without_cores),
        row("24.11.5 cores", asked.jobs, lambda job: with_every_core(job, asked.cores)),
        row("26.05.5", asked.jobs, without_cores),
    ]
    print(json.dumps(rows, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(rows))
    asked_for = [each for each in rows if not each["answer"].endswith("cores")]
    return 0 if all(each["pause_s"] <= GOAL_PAUSE_S and each["times"] <= GOAL_TIMES for each in asked_for) else 1


def row(name: str, jobs: int, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        write(Path(file.name), name.split()[0], jobs, shape)
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(file.name, jobs, theirs))
        process.start()
        found: dict[str, Any] = ours.recv()
        process.join()
    return {"answer": name, "jobs": jobs, **found}


def measure(path: str, jobs: int, pipe: Any) -> None:
    """In a process of its own: its greatest memory is this reading's."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pauses = Pauses()
    watching = threading.Thread(target=pauses.watch, daemon=True)
    watching.start()
    began = time.perf_counter()
    text = run(["cat", path], timeout_s=_LIMIT_S, max_bytes=MAX_BYTES).text
    taken = time.perf_counter()
    assert len(records.jobs(text)) == jobs
    read = time.perf_counter()
    pauses.over.set()
    watching.join()
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    pipe.send(
        {
            "mb": round(len(text) / _MB, 1),
            "take_s": round(taken - began, 2),
            "read_s": round(read - taken, 2),
            "pause_s": round(pauses.longest_s, 3),
            "memory_mb": round(memory / _MB, 1),
            "times": round(memory / len(text), 2),
        }
    )


def write(path: Path, slurm: str, jobs: int, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The recorded answer with its running job `jobs` times, indented as this Slurm does it."""
    recorded = (_RECORDINGS / slurm / "jobs.stdout").read_text(encoding="utf-8", errors="replace")
    answer = json.loads(recorded)
    indent = 2 if "\n" in recorded[:50] else None
    one = json.dumps(shape(answer["jobs"][0]), indent=indent).replace("\n", "\n    ")
    head, tail = json.dumps({**answer, "jobs": ["JOBS"]}, indent=indent).split('"JOBS"')
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for number in range(jobs):
            of_it = one.replace('"job_id": 1,', f'"job_id": {number + 1},')
            file.write((",\n    " if number else "") + of_it.replace('"nodes": "n1"', f'"nodes": "n{number + 1}"'))
        file.write(tail)


def without_cores(job: dict[str, Any]) -> dict[str, Any]:
    return {**job, "job_resources": None}


def with_used_cores(job: dict[str, Any], cores: int) -> dict[str, Any]:
    """As 22.05 tells them."""
    sockets = {str(one): {"cores": {str(core): "allocated" for core in range(cores // 2)}} for one in range(2)}
    node = {"sockets": sockets, "nodename": "n1", "cpus_used": 0, "memory_used": 0, "memory_allocated": 0}
    return {**job, "job_resources": {**job["job_resources"], "allocated_nodes": [node]}}


def with_every_core(job: dict[str, Any], cores: int) -> dict[str, Any]:
    each = [{"index": core, "status": ["ALLOCATED"]} for core in range(cores // 2)]
    node = {"index": 0, "name": "n1", "sockets": [{"index": one, "cores": each} for one in range(2)]}
    return {**job, "job_resources": {"nodes": {"count": 1, "list": "n1", "allocation": [node]}}}


if __name__ == "__main__":
    sys.exit(main())
