"""A cluster of a given size for the scale bench: its nodes, its jobs, and what the head costs.

Six nodes are real, with slurmd and agent; the others are in slurm.conf and DOWN. Of the jobs in Slurm's queue three in
five are held, the others have ended.
"""

import contextlib
import os
import re
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import NodeName
from steward.model.mark import Mark
from steward.ports import PortError
from steward_bed.bed import Backend, Bed, BedError, BedSpec
from steward_bed.wait import wait_until

REAL = 6
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_MANY = {"MaxJobCount": 60_000, "MaxArraySize": 50_001, "MinJobAge": 86_400}
"""Jobs that ended stay: the size is the same from the first run to the last."""
_ENDED_SHARE = 0.4
OF_OTHERS = "of-others"
"""The name of all jobs that are there beside the one that is measured."""
_MINUTE_S = 60.0
_RPC = re.compile(r"^\s+(?P<name>[A-Z_0-9]+)\s+\(\s*\d+\) count:(?P<count>\d+)")
_NOT_OF_HEAD = ("REQUEST_STATS_INFO", "MESSAGE_", "REQUEST_STEP_COMPLETE", "REQUEST_COMPLETE_")
_DRAINED, _DRAINS = 750, 3
_LOOKS = 5
_LOOKS_APART = 3
_CALLS_S = 120.0
_PATIENCE_S = 30.0
_CALLING = re.compile(r"^Agent (?:queue size|count|thread count):\s+(?P<count>\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """What the head costs while nothing happens. `idle_percent` of one core and `rss_mib` are of the head and all that
    it started; `rpcs` are calls to slurmctld a second, by their kind."""

    idle_percent: float
    rss_mib: float
    rpcs: Mapping[str, float]

    @property
    def rpcs_per_s(self) -> float:
        return sum(self.rpcs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """One line of /proc/PID/stat. `ticks` are its own and those of its children that have ended."""

    pid: int
    parent: int
    ticks: int
    rss_mib: float


def spec_of(
    nodes: int, directory: Path, *, backend: str, slurm: str, settings: Mapping[str, Mapping[str, object]]
) -> BedSpec:
    return BedSpec(
        dir=directory,
        backend=Backend(backend),
        nodes=REAL,
        silent=max(0, nodes - REAL),
        slurm=slurm,
        slurm_conf="".join(f"{key}={value}\n" for key, value in _MANY.items()),
        settings=settings,
    )


_PLAIN = (f"--job-name={OF_OTHERS}", "--output=/dev/null", "--chdir=/tmp")


def fill(bed: Bed, jobs: int) -> None:
    """So many more jobs, each with a record of its own: Slurm splits the tasks of an array when some of them change."""
    if jobs <= 0:
        return
    where = "far" if bed.spec.silent else "main"
    array = ["--hold", f"--partition={where}", f"--array=1-{jobs}", *_PLAIN]
    job = bed.run(["sbatch", "--parsable", "-N1", *array, "--wrap=sleep 1"]).text.strip()
    bed.run(["scontrol", "update", f"jobid={job}_[1-{max(1, jobs - 1)}]", "nice=1"], timeout_s=120)
    bed.run(["scancel", f"{job}_[1-{max(1, int(jobs * _ENDED_SHARE))}]"], timeout_s=120)


@contextlib.contextmanager
def new_jobs(bed: Bed, a_minute: int) -> Iterator[None]:
    """Have so many new jobs a minute while this lasts. Each waits for its time to begin and is cancelled a minute
    later: none takes the processors that the tasks of the measured job share with all other nodes here."""
    over = threading.Event()

    def come_and_go() -> None:
        there = deque[str]()
        while not over.wait(_MINUTE_S / a_minute):
            argv = ["sbatch", "--parsable", "-N1", "--begin=now+1hour", *_PLAIN, "--wrap=true"]
            there.append(bed.run(argv, timeout_s=_MINUTE_S).text.strip())
            if len(there) > a_minute:
                bed.run(["scancel", there.popleft()], check=False, timeout_s=_MINUTE_S)
        bed.run(["scancel", *there], check=False, timeout_s=_MINUTE_S)

    coming = threading.Thread(target=come_and_go) if a_minute else None
    if coming:
        coming.start()
    try:
        yield
    finally:
        over.set()
        if coming:
            coming.join()


def await_calls(bed: Bed) -> None:
    """Until slurmctld calls no node any more. When a node returns it calls each that never registered, with a thread
    for each that does not answer (node_mgr.c `_require_node_reg`, ping_nodes.c): for 10,000 without a machine that is
    most of a core for 15 s, which a site whose nodes exist does not have. Raises NotInTime."""

    def is_calling() -> bool:
        told = bed.run(["sdiag"], timeout_s=_PATIENCE_S).text
        return any(int(found["count"]) for found in _CALLING.finditer(told))

    for _ in range(_LOOKS_APART):
        time.sleep(1.0)
        wait_until("slurmctld calls no nodes", lambda: not is_calling(), _CALLS_S, every_s=0.5)


def watch_quiet(bed: Bed, seconds: float, *, settle_s: float, of: int = 0) -> Quiet:
    """Once nothing is going on. `of` is the pid of the head that is watched; 0: that of the bed."""
    time.sleep(settle_s)
    head = of or head_pid(bed)
    before, calls, began = _below(_processes(bed), head), _calls(bed), time.monotonic()
    rss: list[float] = []
    while (left := began + seconds - time.monotonic()) > 0:
        time.sleep(min(2.0, left))
        rss.append(sum(one.rss_mib for one in _below(_processes(bed), head).values()))
    after, took, ended = _below(_processes(bed), head), time.monotonic() - began, _calls(bed)
    # Of a child that ended meanwhile the parent's sum has all: what it had at the start is taken off.
    ticks = sum(one.ticks for one in after.values()) - sum(one.ticks for one in before.values())
    made = {name: (many - calls.get(name, 0)) / took for name, many in ended.items()}
    return Quiet(
        idle_percent=100 * ticks / _TICKS / took,
        rss_mib=statistics.median(rss),
        rpcs={name: rate for name, rate in made.items() if rate > 0 and not name.startswith(_NOT_OF_HEAD)},
    )


def memory_mib(bed: Bed) -> float:
    """Of the head and all that it started, now."""
    return sum(one.rss_mib for one in _below(_processes(bed), head_pid(bed)).values())


def status_s(bed: Bed) -> list[float]:
    """What `steward status` takes, from the shell and back."""
    return [_timed(lambda: bed.run(["steward", "status"])) for _ in range(_LOOKS)]


def step_s(bed: Bed) -> list[float]:
    """What one step on five nodes takes that does nothing: Slurm's own part of any recovery, without us."""
    job = bed.run(
        ["sbatch", "--parsable", "-N5", "--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 600"]
    ).text.strip()
    state = ["squeue", "--noheader", f"--jobs={job}", "--format=%T"]
    try:
        wait_until("the job runs", lambda: bed.run(state, check=False).text.strip() == "RUNNING", _PATIENCE_S)
        return [_timed(lambda: bed.run(["srun", f"--jobid={job}", "--overlap", "-N5", "true"])) for _ in range(_LOOKS)]
    finally:
        bed.run(["scancel", job], check=False)


def page_s(bed: Bed, path: str) -> list[float]:
    """What does not come in time counts as that time."""
    return [_timed(lambda: requests.get(bed.env["STEWARD_URL"] + path, timeout=_PATIENCE_S)) for _ in range(_LOOKS)]


def drain_s(bed: Bed) -> float | None:
    """What the head's own adapter, which has swept them before, takes to drain 750 nodes: the middle of some tries.
    None: the bed has no so many, or not on this machine."""
    if bed.spec.silent < _DRAINED or bed.spec.backend is not Backend.LOCAL:
        return None
    slurm = CommandLineSlurm(conf=bed.env["SLURM_CONF"], timeout_s=60.0)
    nodes = [NodeName(f"far{number}") for number in range(1, _DRAINED + 1)]
    mark = Mark(check="bench", action="drain", id="scale")
    slurm.nodes()
    update = ["scontrol", "update", f"nodename=far[1-{_DRAINED}]"]
    took: list[float] = []
    for _ in range(_DRAINS):
        bed.run([*update, "state=idle"], timeout_s=60)
        began = time.monotonic()
        slurm.drain(dict.fromkeys(nodes, mark))
        took.append(time.monotonic() - began)
        bed.run([*update, "state=down", "reason=bed"], timeout_s=60)
    return statistics.median(took)


def _timed(what: Callable[[], object]) -> float:
    began = time.monotonic()
    with contextlib.suppress(PortError, BedError, requests.RequestException):
        what()
    return time.monotonic() - began


def pid_of(bed: Bed, *programs: str) -> int:
    """Return the pid on the controller of a daemon of the bed: the first whose command has one of the words."""
    told = bed.run(["sh", "-c", 'for p in /proc/[0-9]*; do echo "${p#/proc/} $(tr "\\0" " " <$p/cmdline)"; done']).text
    config = bed.env.get("STEWARD_CONFIG", "") if bed.spec.backend is Backend.LOCAL else ""
    for line in told.splitlines():
        pid, _, argv = line.partition(" ")
        if any(word in argv for word in programs) and config in argv and "for p in" not in argv:
            return int(pid)
    raise BedError(f"{programs[0]} does not run: see its log in the bed's directory")


def head_pid(bed: Bed) -> int:
    """Return the pid of stewardd on the controller."""
    return pid_of(bed, "steward.head", "/stewardd")


def _processes(bed: Bed) -> list[_Process]:
    told = bed.run(["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null || true"]).text
    return [_process(line) for line in told.splitlines() if ")" in line]


def _process(line: str) -> _Process:
    fields = line.rpartition(")")[2].split()
    ticks = sum(int(fields[at]) for at in (11, 12, 13, 14))
    pid, parent = int(line.split(" ", 1)[0]), int(fields[1])
    return _Process(pid=pid, parent=parent, ticks=ticks, rss_mib=int(fields[21]) * _PAGE_MIB)


def _below(every: Sequence[_Process], head: int) -> dict[int, _Process]:
    """The head and what it started."""
    found = {one.pid: one for one in every if one.pid == head}
    size = 0
    while len(found) > size:
        size = len(found)
        found |= {one.pid: one for one in every if one.parent in found}
    return found


def _calls(bed: Bed) -> dict[str, int]:
    told = bed.run(["sdiag"]).text
    return {found["name"]: int(found["count"]) for line in told.splitlines() if (found := _RPC.match(line))}
