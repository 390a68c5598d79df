"""How busy this node's jobs are: the CPU time of each job's processes, and the machine's network and GPUs."""

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steward.model.ids import JobId

_TICKS = os.sysconf("SC_CLK_TCK")
_JOB = re.compile(rb"^(?!.*/user\.slice/).*?/job_([1-9][0-9]{0,9})(?:/|$)", re.MULTILINE)
"""The cgroup of a job's step. Groups below user.slice do not count: users name those as they like."""
_ENV_JOB = re.compile(rb"(?:\A|\0)SLURM_JOB_ID=([1-9][0-9]{0,9})\0")
_MAX_ENVIRON = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Counters that only grow. A job that is not in `cpu_s` has no process here."""

    cpu_s: Mapping[JobId, float] = field(default_factory=dict)
    network_bytes: int = 0
    """Bytes over all devices but loopback, InfiniBand included. They are the machine's, not one job's."""


def used(users: Mapping[JobId, int], proc_dir: Path = Path("/proc"), sys_dir: Path = Path("/sys")) -> Used:
    """Look once at the jobs of these users; a process that ends meanwhile is left out."""
    cpu: defaultdict[JobId, float] = defaultdict(float)
    for pid, job in processes(users, proc_dir):
        cpu[job] += _cpu_s(proc_dir / str(pid))
    return Used(cpu_s=dict(cpu), network_bytes=_network(proc_dir) + _infiniband(sys_dir))


def processes(users: Mapping[JobId, int], proc_dir: Path = Path("/proc")) -> list[tuple[int, JobId]]:
    """(pid, job) of each process of these users' jobs, Slurm's own among them."""
    pids = [int(entry) for entry in os.listdir(proc_dir) if entry.isdigit()] if users else []
    found = ((pid, _job_of(proc_dir / str(pid), users)) for pid in pids)
    return [(pid, job) for pid, job in found if job is not None]


def _job_of(process: Path, users: Mapping[JobId, int]) -> JobId | None:
    """By its cgroup, which is root's word; by its environment where Slurm makes no cgroups. That is its user's word,
    and counts for his own jobs only."""
    if (job := _named(_JOB, process / "cgroup")) in users:
        return job
    job = _named(_ENV_JOB, process / "environ")
    if job is None or job not in users:
        return None
    return job if users[job] == owner(process) else None


def _named(pattern: re.Pattern[bytes], file: Path) -> JobId | None:
    found = pattern.search(_read(file) + b"\0")
    return JobId(int(found[1])) if found is not None else None


def owner(process: Path) -> int | None:
    """The user of a folder of /proc; None: it has gone."""
    try:
        return process.stat().st_uid
    except OSError:
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
    """Bytes that all InfiniBand ports sent and received. Their counters are in words of four bytes."""
    files = (sys_dir / "class/infiniband").glob("*/ports/*/counters/port_*_data")
    words = (_read(file).strip() for file in files)
    return sum(4 * int(word) for word in words if word.isdigit())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_ENVIRON)
    except OSError:
        return b""
