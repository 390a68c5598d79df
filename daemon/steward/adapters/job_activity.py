"""What the jobs of this node use: CPU time of each one's processes, and the machine's network and GPUs."""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steward.model.ids import JobId

_TICKS = os.sysconf("SC_CLK_TCK")
_JOB = re.compile(rb"/job_([1-9][0-9]{0,9})(?:/|$)", re.MULTILINE)
_ENV_JOB = re.compile(rb"(?:\A|\0)SLURM_JOB_ID=([1-9][0-9]{0,9})\0")
_MAX_ENVIRON = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Counters that only grow. A job that is not in `cpu_s` has no process here."""

    cpu_s: Mapping[JobId, float] = field(default_factory=dict)
    network_bytes: int = 0
    """Of all devices but loopback, InfiniBand's included: the machine's, not the job's."""


def used(jobs: Collection[JobId], proc_dir: Path = Path("/proc"), sys_dir: Path = Path("/sys")) -> Used:
    """One look; what ends meanwhile is left out."""
    cpu: defaultdict[JobId, float] = defaultdict(float)
    for pid, job in processes(jobs, proc_dir):
        cpu[job] += _cpu_s(proc_dir / str(pid))
    return Used(cpu_s=dict(cpu), network_bytes=_network(proc_dir) + _infiniband(sys_dir))


def processes(jobs: Collection[JobId], proc_dir: Path = Path("/proc")) -> list[tuple[int, JobId]]:
    """(pid, job) of each process of these jobs, Slurm's own among them."""
    wanted = frozenset(jobs)
    pids = [int(entry) for entry in os.listdir(proc_dir) if entry.isdigit()] if wanted else []
    found = ((pid, _job_of(proc_dir / str(pid), wanted)) for pid in pids)
    return [(pid, job) for pid, job in found if job is not None]


def _job_of(process: Path, wanted: frozenset[JobId]) -> JobId | None:
    """By its cgroup; by its environment where Slurm makes no cgroups. The latter may be told wrong by its user, to the
    harm of nobody but his own jobs: who asks compares the user."""
    for pattern, name in ((_JOB, "cgroup"), (_ENV_JOB, "environ")):
        found = pattern.search(_read(process / name) + b"\0")
        if found is not None and (job := JobId(int(found[1]))) in wanted:
            return job
    return None


def _cpu_s(process: Path) -> float:
    fields = _read(process / "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if len(fields) > 12 else 0.0


def _network(proc_dir: Path) -> int:
    lines = _read(proc_dir / "net" / "dev").decode("ascii", "replace").splitlines()[2:]
    total = 0
    for line in lines:
        name, _, counters = line.partition(":")
        words = counters.split()
        if name.strip() != "lo" and len(words) > 8:
            total += int(words[0]) + int(words[8])
    return total


def _infiniband(sys_dir: Path) -> int:
    """Its counters are in words of four bytes."""
    files = (sys_dir / "class/infiniband").glob("*/ports/*/counters/port_*_data")
    words = (_read(file).strip() for file in files)
    return sum(4 * int(word) for word in words if word.isdigit())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_ENVIRON)
    except OSError:
        return b""
