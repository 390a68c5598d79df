"""What Steward costs while nothing happens: `python -m tests.bench.quiet [--seconds S] [--json FILE]`.

A real cluster of one node with an agent and a head, both with default settings. Of each: CPU time, how often one of
its threads was woken (voluntary context switches), and memory (RSS, and PSS: shared pages counted in part), as the
kernel counts them; with what each thread was woken. Goals: agent <= 0.1 % of a core, <= 1 wake a second, <= 26 MiB;
head <= 5 wakes a second. And how long `steward --help` takes: goal 0.2 s.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from steward_bed.bed import Bed, BedSpec
from tests.bench.recovery import add_bed, new_dir, with_bed
from tests.bench.scale_bed import head_pid, pid_of

GOALS: Mapping[str, Mapping[str, float]] = {
    "agent": {"percent": 0.1, "wakes_per_s": 1.0, "pss_mib": 26.0},
    "head": {"wakes_per_s": 5.0},
}
HELP_GOAL_S = 0.2
_HELPS = 5
_RARE = 2
"""A thread that was woken no more often than this since its start has hardly ever run."""
_TICKS = os.sysconf("SC_CLK_TCK")
_KIB_OF_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one process over a time; `by_thread` is the wakes a second of each thread that was woken."""

    percent: float
    wakes_per_s: float
    rss_mib: float
    pss_mib: float
    threads: int
    idle_threads: int
    """Threads that have hardly ever run."""
    by_thread: Mapping[str, float]


def cost(pid: int, seconds: float) -> Cost:
    """Watch the process for so long."""
    before, ticks, began = _wakes(pid), _cpu_ticks(pid), time.monotonic()
    time.sleep(seconds)
    after, used, took = _wakes(pid), _cpu_ticks(pid) - ticks, time.monotonic() - began
    woken = {thread: (count - before.get(thread, 0)) / took for thread, count in after.items()}
    memory = _kib(Path(f"/proc/{pid}/smaps_rollup"))
    return Cost(
        percent=round(100 * used / _TICKS / took, 3),
        wakes_per_s=round(sum(woken.values()), 2),
        rss_mib=round(memory["Rss"] / _KIB_OF_MIB, 1),
        pss_mib=round(memory["Pss"] / _KIB_OF_MIB, 1),
        threads=len(after),
        idle_threads=sum(count <= _RARE for count in after.values()),
        by_thread={thread: round(rate, 2) for thread, rate in woken.items() if rate},
    )


def _wakes(pid: int) -> dict[str, int]:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        found[f"{task.name} {status['Name'].strip()}"] = int(status["voluntary_ctxt_switches"])
    return found


def _cpu_ticks(pid: int) -> int:
    """Of the process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[at]) for at in (11, 12, 13, 14))


def _kib(file: Path) -> dict[str, int]:
    rows = (line.split() for line in file.read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if row[-1] == "kB"}


def _spec(given: Path | None, kernel_log: str) -> BedSpec:
    return BedSpec(
        dir=given or new_dir(), nodes=1, settings={"agent": {"check_interval_s": 15.0, "kernel_log": kernel_log}}
    )


@contextmanager
def quiet_device() -> Iterator[str]:
    """Give the path of a device like /dev/kmsg on which nothing comes: that of a machine with containers has much."""
    ours, theirs = os.openpty()
    try:
        yield os.ttyname(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def _measured(bed: Bed, settle_s: float, seconds: float) -> dict[str, Cost]:
    time.sleep(settle_s)
    pids = {"agent": pid_of(bed, "steward.agent"), "head": head_pid(bed)}
    return {name: cost(pid, seconds) for name, pid in pids.items()}


def help_s() -> float:
    """The least wall time of some tries of `steward --help`."""
    found = []
    for _ in range(_HELPS):
        began = time.monotonic()
        subprocess.run([Path(sys.executable).with_name("steward"), "--help"], capture_output=True, check=True)
        found.append(round(time.monotonic() - began, 3))
    return min(found)


def missed(found: Mapping[str, Cost], help_took_s: float) -> list[str]:
    """Return a line for each goal that is not met."""
    lines = [
        f"{name}: {what} is {asdict(one)[what]:g}, the goal is {goal:g}"
        for name, one in found.items()
        for what, goal in GOALS[name].items()
        if asdict(one)[what] > goal
    ]
    is_late = help_took_s > HELP_GOAL_S
    return [*lines, f"steward --help takes {help_took_s:g} s, the goal is {HELP_GOAL_S:g}"] if is_late else lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle-s", type=float, default=30.0, help="first looks and reports are over by then")
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_bed(parser)
    asked = parser.parse_args()
    with quiet_device() as kernel_log:
        found = with_bed(_spec(asked.bed, kernel_log), lambda bed: _measured(bed, asked.settle_s, asked.seconds))
    print(f"{'':8}{'% of a core':>12}{'wakes/s':>9}{'RSS MiB':>9}{'PSS MiB':>9}{'threads':>9}{'hardly ran':>12}")
    for name, one in found.items():
        sizes = f"{one.rss_mib:9.1f}{one.pss_mib:9.1f}{one.threads:9}{one.idle_threads:12}"
        print(f"{name:8}{one.percent:12.3f}{one.wakes_per_s:9.2f}{sizes}")
        for thread, rate in sorted(one.by_thread.items(), key=lambda each: -each[1]):
            print(f"{'':10}{rate:6.2f} a second: {thread}")
    print(f"steward --help: {(took_s := help_s()):.3f} s")
    for line in (failed := missed(found, took_s)):
        print(f"missed: {line}")
    if asked.json:
        figures = {"help_s": took_s, **{name: asdict(one) for name, one in found.items()}}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
