"""How long Slurm's hooks wait for us: `python -m tests.bench.hook_latency [--runs N] [--json FILE]`.

steward-verdict (and the prolog script around it) against a real agent, against one that stands still and against none,
beside the start of `true`, which nobody can be faster than. Goal: 20 ms at most, the program's start included.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

GOAL_MS = 20.0
_SPANK = Path(__file__).resolve().parents[2] / "spank"
_VERDICT = _SPANK / "build" / "steward-verdict"
_TOML = """[agent]
head = "127.0.0.1:9"
socket = "{0}/agent.sock"
state_dir = "{0}"
kernel_log = "{1}"
site_checks_dir = "{0}/checks.d"
setup_dir = "{0}/setup"
"""


@contextmanager
def agent_in(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real agent without a head."""
    toml = folder / "steward.toml"
    log = "/dev/kmsg" if os.access("/dev/kmsg", os.R_OK) else f"{folder}/kernel.log"
    toml.write_text(_TOML.format(folder, log))
    argv = [sys.executable, "-m", "steward.agent", "--config", str(toml), "--node", "n1"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            while not (folder / "agent.sock").exists():
                time.sleep(0.05)
            time.sleep(2.0)  # its first looks are over
            yield agent
        finally:
            agent.send_signal(signal.SIGCONT)
            agent.terminate()


def times_ms(argv: Sequence[str], env: dict[str, str], runs: int) -> list[float]:
    """Wall time of each run, start of the program included."""
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        pid = os.posix_spawn(argv[0], list(argv), env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", 1, 0)])
        os.waitpid(pid, 0)
        took.append((time.perf_counter() - began) * 1e3)
    return sorted(took)


def row(took: list[float]) -> dict[str, float]:
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(took[min(int(share * len(took)), len(took) - 1)], 2) for name, share in at.items()}


def measure(runs: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {"PATH": "/usr/bin:/bin", "STEWARD_SOCKET": f"{folder}/agent.sock", "STEWARD_VERDICT": str(_VERDICT)}
        env["STEWARD_HOOKS_CONF"] = f"{folder}/none"
        verdict = [str(_VERDICT), f"--socket={folder}/agent.sock", "--refuse=fatal"]
        prolog = ["/bin/sh", str(_SPANK / "hooks" / "steward-prolog")]
        rows = {"true": row(times_ms(["/bin/true"], env, runs))}
        rows["no agent"] = row(times_ms(verdict, env, runs))
        with agent_in(folder) as agent:
            rows["agent"] = row(times_ms(verdict, env, runs))
            rows["agent, by steward-prolog"] = row(times_ms(prolog, env, runs))
            agent.send_signal(signal.SIGSTOP)
            rows["frozen agent"] = row(times_ms(verdict, env, max(runs // 5, 1)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = measure(arguments.runs)
    print(f"{'ms':26}{'p50':>8}{'p95':>8}{'p99':>8}{'max':>8}")
    for name, one in rows.items():
        print(f"{name:26}" + "".join(f"{one[key]:8.2f}" for key in ("p50", "p95", "p99", "max")))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0 if rows["frozen agent"]["p95"] <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
