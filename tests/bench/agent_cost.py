"""What watching a node costs: `python -m tests.bench.agent_cost [--seconds S] [--every N] [--nhc FILE] [--json FILE]`.

A real agent with all its checks, and beside it the usual way: eight checks in a shell script (and, with --nhc, in the
real NHC with that configuration), started anew every N seconds. CPU time is of the process and all that it started, as
the kernel counted it; memory is the largest resident size. A pass is one look of every quick check, in a process of its
own that does nothing else. Goals: <= 0.2 % of a core, <= 40 MiB, <= 3 ms a pass.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from steward.adapters.node.probe import LocalProbes
from steward.checks import CHECKS
from steward.checks.check import Facts, Past
from steward.checks.limits import Limits
from steward.model.ids import NodeName
from steward.model.probe import RunProgram
from tests.bench.hook_latency import agent_in

GOAL_PERCENT, GOAL_MIB, GOAL_PASS_MS = 0.2, 40.0, 3.0
_PASSES = 9
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)

EIGHT_CHECKS = r"""#!/bin/bash
# Root writable, disk, inodes, memory, load, a daemon, an interface, the clock: what a node check in a script looks at.
fail() { echo "ERROR: $1"; exit 1; }
touch /tmp/.eight.$$ && rm -f /tmp/.eight.$$ || fail "read-only"
[ "$(df -P / | awk 'NR==2 {sub("%","",$5); print $5}')" -lt 101 ] || fail "disk full"
[ "$(df -iP / | awk 'NR==2 {sub("%","",$5); print $5+0}')" -lt 101 ] || fail "no inodes"
[ "$(awk '/^MemTotal/ {print $2}' /proc/meminfo)" -gt 1000 ] || fail "memory"
[ "$(cut -d. -f1 /proc/loadavg)" -lt 100000 ] || fail "load"
ps -eo comm= | grep -q . || fail "no daemon"
ls /sys/class/net | grep -q . || fail "no interface"
dmesg 2>/dev/null | grep -q "NVRM: Xid .*: 79" && fail "Xid 79"
exit 0
"""


def own_cpu_s(pid: int) -> float:
    """Of the process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[at]) for at in (11, 12, 13, 14)) / _TICKS


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MIB


def watch_agent(seconds: float) -> dict[str, float]:
    """A real agent once its start is over."""
    with tempfile.TemporaryDirectory() as name, agent_in(Path(name)) as agent:
        time.sleep(20.0)  # imports and first looks
        before, wakes = own_cpu_s(agent.pid), _switches(agent.pid)
        mib = 0.0
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            mib = max(mib, resident_mib(agent.pid))
            time.sleep(1.0)
        took = time.monotonic() - began
        woke = (_switches(agent.pid) - wakes) / took
        return {**_row(own_cpu_s(agent.pid) - before, took, mib), "wakes_per_s": round(woke, 2)}


def quick_pass_ms() -> float:
    """Median CPU time of a pass as an agent makes it: equal looks are one. Checks that start a program are left out."""
    probes, facts = LocalProbes(skew_s=lambda: None), Facts(node=NodeName("n1"), limits=Limits())
    quick = [check for check in CHECKS if check.is_quick]
    quick = [check for check in quick if not any(isinstance(one, RunProgram) for one in check.probes(facts))]
    took = []
    for _ in range(_PASSES):
        time.sleep(1.0)  # what was looked at is not given again
        began = time.process_time()
        for check in quick:
            raws = tuple(probes.look(probe) for probe in check.probes(facts))
            check.verdict(raws, facts, Past(now=time.time()))
        took.append((time.process_time() - began) * 1e3)
    return round(sorted(took)[_PASSES // 2], 2)


def _switches(pid: int) -> int:
    """Voluntary context switches of every thread: how often it was woken."""
    lines = [line for path in Path(f"/proc/{pid}/task").glob("*/status") for line in path.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def run_anew(argv: Sequence[str], seconds: float, every_s: float) -> dict[str, float]:
    """The program started every `every_s` seconds; its cost is that of one run, times the runs."""
    runs = max(int(seconds / every_s), 3)
    cpu_s = mib = 0.0
    for _ in range(runs):
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        _, _, used = os.wait4(child.pid, 0)
        cpu_s += used.ru_utime + used.ru_stime
        mib = max(mib, used.ru_maxrss / 1024)
        child.returncode = 0
        time.sleep(0.2)
    return _row(cpu_s, runs * every_s, mib)


def _row(cpu_s: float, seconds: float, mib: float) -> dict[str, float]:
    share = cpu_s / seconds
    return {"percent": round(100 * share, 4), "cpu_s_per_h": round(3600 * share, 2), "rss_mib": round(mib, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--every", type=float, default=60.0, help="how often the scripts run (usual: 60 to 300 s)")
    parser.add_argument("--nhc", default="", help="an NHC configuration, where nhc is installed")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "eight"
        script.write_text(EIGHT_CHECKS)
        script.chmod(0o755)
        pass_ms = quick_pass_ms()
        rows = {"agent": {**watch_agent(arguments.seconds), "pass_ms": pass_ms}}
        for every_s in (15.0, arguments.every):
            rows[f"script every {every_s:g} s"] = run_anew([str(script)], arguments.seconds, every_s)
            if arguments.nhc and shutil.which("nhc"):
                argv = ["nhc", "-n", "bench", "-c", arguments.nhc, "MARK_OFFLINE=0", "LOGFILE=-", "OFFLINE_NODE=:"]
                rows[f"nhc every {every_s:g} s"] = run_anew(argv, arguments.seconds, every_s)
    print(f"{'':24}{'% of a core':>12}{'CPU s per h':>13}{'RSS MiB':>9}{'wakes/s':>9}")
    for label, row in rows.items():
        woke = f"{row['wakes_per_s']:9.2f}" if "wakes_per_s" in row else ""
        print(f"{label:24}{row['percent']:12.4f}{row['cpu_s_per_h']:13.2f}{row['rss_mib']:9.1f}{woke}")
    print(f"one pass of the quick checks: {pass_ms:.2f} ms of CPU time")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    agent = rows["agent"]
    is_good = agent["percent"] <= GOAL_PERCENT and agent["rss_mib"] <= GOAL_MIB and pass_ms <= GOAL_PASS_MS
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
