"""The processes of this node's jobs, the network's traffic, and stacks as the kernel shows them.

For the stacks no file is read that the kernel fills from a process's memory (`cmdline`, `environ`): reading it from a
hung process may hang.
"""

import os
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from steward.adapters import proc
from steward.model.ids import JobId
from steward.model.text import printable

_JOB = re.compile(rb"^(?!.*/user\.slice/).*?/job_([1-9][0-9]{0,9})(?:/|$)", re.MULTILINE)
"""The cgroup of a job's step. Cgroups below user.slice do not count: users can choose their names."""
_ENV_JOB = re.compile(rb"(?:\A|\0)SLURM_JOB_ID=([1-9][0-9]{0,9})\0")
_MAX_ENVIRON = 1 << 20


def jobs_here(users: Mapping[JobId, int], proc_dir: Path = Path("/proc")) -> frozenset[JobId]:
    """Return which of these users' jobs have processes here."""
    return frozenset(job for _, job in processes(users, proc_dir))


def network_bytes(proc_dir: Path = Path("/proc")) -> int:
    """Return the bytes of the whole machine over all devices of this network namespace; they only grow."""
    lines = _read(proc_dir / "net" / "dev").decode("ascii", "replace").splitlines()[2:]
    counters = (line.partition(":")[2].split() for line in lines)
    return sum(int(words[0]) + int(words[8]) for words in counters if len(words) > 8)


def fabric_bytes(sys_dir: Path = Path("/sys")) -> int:
    """Return the bytes of the whole machine over InfiniBand and EFA, which pass the kernel by; they only grow."""
    ports = sys_dir / "class/infiniband"
    words = (_read(file).strip() for file in ports.glob("*/ports/*/counters/port_*_data"))  # words of four bytes
    efa = (_read(file).strip() for file in ports.glob("*/ports/*/hw_counters/[rt]x_bytes"))
    return sum(4 * int(word) for word in words if word.isdigit()) + sum(int(one) for one in efa if one.isdigit())


def processes(users: Mapping[JobId, int], proc_dir: Path = Path("/proc")) -> list[tuple[int, JobId]]:
    """Return (pid, job) of each process of these users' jobs, Slurm's own processes included."""
    pids = [int(entry) for entry in os.listdir(proc_dir) if entry.isdigit()] if users else []
    found = ((pid, _job_of(proc_dir / str(pid), users)) for pid in pids)
    return [(pid, job) for pid, job in found if job is not None]


def _job_of(process: Path, users: Mapping[JobId, int]) -> JobId | None:
    """Return the job of a process, by its cgroup or else by its environment; None if it has none."""
    # Root makes cgroups. The environment, for a Slurm without cgroups, is the user's own claim: it counts for that
    # user's jobs.
    if (job := job_of_cgroups(_read(process / "cgroup"))) in users:
        return job
    uid = owner(process)
    if uid not in users.values():
        return None  # reading a process's memory may hang: only processes of the jobs' users are read
    job = _job_in(_ENV_JOB, _read(process / "environ") + b"\0")
    return job if job is not None and users.get(job) == uid else None


def job_of_cgroups(text: bytes) -> JobId | None:
    """Return the job of the process with these lines of /proc/PID/cgroup; None if Slurm made none of these cgroups."""
    return _job_in(_JOB, text)


def _job_in(pattern: re.Pattern[bytes], text: bytes) -> JobId | None:
    found = pattern.search(text)
    return JobId(int(found[1])) if found is not None else None


def owner(process: Path) -> int | None:
    """Return the user of a process's folder in /proc; None if it has gone."""
    try:
        return process.stat().st_uid
    except OSError:
        return None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_ENVIRON)
    except OSError:
        return b""


_PROC = Path("/proc")
_MAX_FILE = 8192
_MAX_THREADS = 64
_STATUS = ("State", "PPid", "Uid", "Threads", "VmRSS")
_PASS_ON = frozenset(
    {"srun", "slurmstepd", "mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "mpiexec.hydra"}
)
"""Programs that pass signals on to tasks, some of which may not expect the signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The number of processes that got the signal, and of all that were to get it."""

    told: int
    of: int


def describe(pids: Iterable[int]) -> str:
    """Return name, state, threads and stacks of each process; those that are gone are left out."""
    return "\n".join(text for pid in pids if (text := _described(_PROC / str(pid))))


def signal_those_who_expect_it(pids: Iterable[int], uid: int, word: str) -> Asked:
    """Send SIG`word` to the processes of `uid` that have a handler for it; a process without one would be ended."""
    number, wanted = signal.Signals[f"SIG{word}"], list(pids)
    seen = [seen for pid in wanted if (seen := proc.look(pid)) is not None and _expects(pid, uid, number)]
    return Asked(told=sum(proc.send(one.process, number) for one in seen), of=len(wanted))


def _expects(pid: int, uid: int, number: signal.Signals) -> bool:
    status = _text(_PROC / str(pid) / "status")
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    owner = re.search(r"^Uid:\s*(\d+)", status, re.MULTILINE)
    name = _text(_PROC / str(pid) / "comm").strip()
    if caught is None or owner is None or int(owner[1]) != uid or name in _PASS_ON:
        return False
    return bool(int(caught[1], 16) >> (number - 1) & 1)


def _described(place: Path) -> str:
    status = dict(line.partition(":")[::2] for line in _text(place / "status").splitlines())
    if not status:
        return ""
    facts = " ".join(f"{key}={printable(' '.join(status[key].split()), 40)}" for key in _STATUS if key in status)
    lines = [f"process {place.name} {printable(_text(place / 'comm').strip(), 32)} {facts}"]
    lines += [_thread(one) for one in islice(sorted(_threads(place)), _MAX_THREADS)]
    return "\n".join(lines)


def _threads(place: Path) -> list[Path]:
    try:
        return list((place / "task").iterdir())
    except OSError:
        return []


def _thread(place: Path) -> str:
    """Return a line about a thread: name, state, the function in which it waits, and (for root) its kernel stack."""
    state = _text(place / "stat").rpartition(")")[2].split()[:1] or ["?"]
    waits = _text(place / "wchan").strip() or "-"
    frames = [printable(line.split("] ", 1)[-1], 80) for line in _text(place / "stack").splitlines()[:16]]
    stack = f" stack: {' < '.join(frames)}" if frames else ""
    name = printable(_text(place / "comm").strip(), 32)
    return f"  thread {place.name} {name} {printable(state[0], 4)} waits in {printable(waits, 64)}{stack}"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE).decode("utf-8", "replace")
    except OSError:
        return ""
