"""How often Slurm's test, as `SlurmPort.fits` asks it, says what Slurm then does: `python -m tests.bench.fits
[--pairs N] [--seed N] [--json FILE]` as root, where Slurm is installed.

A cluster of eight unlike nodes (features, GRES types, memory, two switches, a license) with random running jobs, nodes
that are drained and nodes that are kept. A random job is submitted held, asked about, then freed and released with the
highest priority. Goal: 999 of 1,000 answers are what then happens; an answer that is UNKNOWN is counted beside.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from steward.adapters.process import run
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.library import Library
from steward.model.fit import FitState, Question
from steward.model.ids import JobId, NodeName
from steward.model.reservation import keep_name

GOAL = 0.999
_NODES = [NodeName(f"n{number}") for number in range(1, 9)]
_PAIRS_A_WORLD = 25
_HAS = (
    "CPUs=8 RealMemory=4000 Gres=gpu:a100:4 Feature=big,fast",
    "CPUs=8 RealMemory=8000 Gres=gpu:l4:4 Feature=big",
    "CPUs=4 RealMemory=2000 Feature=fast",
    "CPUs=16 RealMemory=8000 Gres=gpu:a100:8 Feature=big,fast",
)
_MORE = (
    "Licenses=x:2,y:1",
    "TopologyPlugin=topology/tree",
    "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=3600",
    "GresTypes=gpu",
)


class World:
    """A test bed of plain Slurm, made unlike."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.bed = (str(Path(sys.executable).with_name("steward-testbed")),)
        try:
            self._up()
        except BaseException:
            self.down()
            raise
        self.port = CommandLineSlurm(conf=self.conf, library=Library(conf=self.conf), asker=FitAsker(conf=self.conf))
        self.kept: JobId | None = None

    @property
    def conf(self) -> str:
        return str(self.folder / "etc/slurm.conf")

    def _up(self) -> None:
        run([*self.bed, "up", "--plain", "--nodes", "8", "--dir", str(self.folder)], timeout_s=120.0)
        path = Path(self.conf)
        lines = []
        for line in path.read_text().splitlines():
            if line.startswith("NodeName="):
                number = int(line.split()[0].removeprefix("NodeName=n"))
                kept = [w for w in line.split() if w.split("=")[0] in ("NodeName", "NodeHostname", "NodeAddr", "Port")]
                line = " ".join([*kept, _HAS[number % len(_HAS)], "State=UNKNOWN"])
            if not line.startswith(("GresTypes=", "SchedulerParameters=")):
                lines.append(line)
        first = next(at for at, line in enumerate(lines) if line.startswith("NodeName="))
        lines[first:first] = _MORE
        path.write_text("\n".join(lines) + "\n")
        path.with_name("gres.conf").write_text("".join(self._gpus(number) for number in range(1, 9)))
        switches = "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8]\nSwitchName=s0 Switches=s[1-2]\n"
        path.with_name("topology.conf").write_text(switches)
        env = {"STEWARD_TESTBED": str(self.folder), "SLURM_CONF": self.conf}
        run([*self.bed, "inject", "restart-slurmctld"], timeout_s=60.0, env=env)
        for node in _NODES:
            run([*self.bed, "inject", "kill-node", node], timeout_s=60.0, env=env)
            run([*self.bed, "inject", "start-node", node], timeout_s=60.0, env=env)
        self.wait_idle()

    def _gpus(self, number: int) -> str:
        """The line of gres.conf of a node, with devices that are there."""
        found = re.search(r"Gres=gpu:(\w+):(\d+)", _HAS[number % len(_HAS)])
        if found is None:
            return ""
        devices = [self.folder / f"etc/gpu{at}" for at in range(int(found[2]))]
        for device in devices:
            device.touch()
        return f"NodeName=n{number} Name=gpu Type={found[1]} File={self.folder}/etc/gpu[0-{len(devices) - 1}]\n"

    def down(self) -> None:
        run([*self.bed, "down"], timeout_s=60.0, env={"STEWARD_TESTBED": str(self.folder)})

    def slurm(self, *words: str) -> str:
        done = subprocess.run(
            words, capture_output=True, text=True, env={"SLURM_CONF": self.conf, "PATH": "/usr/bin:/bin:/usr/sbin"}
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def wait_idle(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            states = self.slurm("sinfo", "-h", "-N", "-o", "%T").split()
            if states and set(states) == {"idle"}:
                return
            time.sleep(0.2)
        raise TimeoutError(f"not every node is idle: {self.slurm('sinfo', '-R')}")

    def shape(self) -> list[str]:
        """What a random job asks for."""
        pick, maybe = self.chance.choice, self.chance.random
        words = [f"-N{pick([1, 1, 1, 2, 2, 3, 4])}", f"-t{pick([5, 10, 60])}"]
        words += ["--exclusive"] if maybe() < 0.4 else []
        words += [f"--mem={pick([100, 1500, 2500, 5000])}"] if maybe() < 0.5 else []
        words += [f"-C{pick(['big', 'fast', 'big&fast', 'big|fast'])}"] if maybe() < 0.4 else []
        words += [f"--gres=gpu:{pick(['1', '4', 'a100:1', 'a100:4', 'a100:8', 'l4:2'])}"] if maybe() < 0.4 else []
        words += [f"--licenses={pick(['x:1', 'x:2', 'y:1'])}"] if maybe() < 0.2 else []
        words += [f"--ntasks-per-node={pick([1, 2, 4])}"] if maybe() < 0.3 else []
        words += [f"-c{pick([1, 2, 4, 8])}"] if maybe() < 0.3 else []
        words += ["--switches=1"] if maybe() < 0.15 else []
        words += [f"-w{pick(_NODES)}"] if maybe() < 0.15 else []
        words += [f"-x{pick(_NODES)}"] if maybe() < 0.15 else []
        return words

    def submit(self, *words: str) -> JobId | None:
        told = self.slurm("sbatch", "--parsable", "-o/dev/null", "-D/", *words, "--wrap", "exec sleep 3000")
        return JobId(int(told)) if told.isdigit() else None

    def renew(self) -> None:
        """Another random state of the cluster."""
        if self.kept is not None:
            self.port.free_nodes(keep_name(self.kept))
            self.kept = None
        self.slurm("scancel", "--user=root")
        self.slurm("scontrol", "update", "nodename=n[1-8]", "state=resume")
        self.wait_idle()
        for _ in range(self.chance.randint(0, 6)):
            self.submit(*self.shape())
        time.sleep(2.5)
        self.slurm("scancel", "--user=root", "--state=PENDING")
        if self.chance.random() < 0.4:
            self.slurm("scontrol", "update", f"nodename={self.chance.choice(_NODES)}", "state=drain", "reason=bench")

    def state(self, job: JobId) -> tuple[str, str]:
        state, _, reason = self.slurm("squeue", "-h", f"-j{job}", "-o", "%T %r").partition(" ")
        return state, reason

    def pair(self) -> tuple[FitState, bool, list[str], str] | None:
        """The answer, whether the job started, and what it was; None: Slurm did not take the job."""
        words = self.shape()
        job = self.submit("-H", *words)
        if job is None:
            return None
        kept = keep_name(job) if self.chance.random() < 0.3 else ""
        if kept:
            try:
                self.port.keep_nodes(kept, self.chance.sample(_NODES, 3), 3600.0)
            except Exception:  # some are drained, or busy in another way
                kept = ""
        without = frozenset(self.chance.sample(_NODES, self.chance.choice([0, 0, 1, 2])))
        fit = self.port.fits(Question(job=job, without=without, through=kept))
        if kept:
            self.port.free_nodes(kept)
        exclude = without | self.port.jobs([job])[job].excluded
        self.slurm("scontrol", "update", f"jobid={job}", f"excnodelist={','.join(sorted(exclude))}")
        self.slurm("scontrol", "release", str(job))
        end = time.monotonic() + 5.0
        state, reason = self.state(job)
        while state == "PENDING" and time.monotonic() < end and reason in ("None", "JobHeldUser", ""):
            time.sleep(0.1)
            state, reason = self.state(job)
        if state == "PENDING":
            time.sleep(0.6)
            state, reason = self.state(job)
        self.slurm("scancel", str(job))
        while self.state(job)[0] not in ("", "CANCELLED"):
            time.sleep(0.1)
        return fit.state, state == "RUNNING", [*words, f"without={sorted(without)}", f"through={kept}"], reason


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="steward-fits-") as folder:
        world = World(Path(folder) / "bed", random.Random(asked.seed))
        try:
            _measure(world, asked.pairs, counts)
        finally:
            world.down()
    known = counts["right"] + counts["wrong"]
    share = counts["right"] / known if known else 0.0
    print(f"{dict(counts)}: {share:.4f} of {known} answers are what Slurm then did (goal {GOAL})")
    if asked.json:
        asked.json.write_text(json.dumps({"counts": counts, "share": share}))
    return 0 if share >= GOAL else 1


def _measure(world: World, pairs: int, counts: Counter[str]) -> None:
    done = 0
    while done < pairs:
        if done % _PAIRS_A_WORLD == 0:
            world.renew()
        found = world.pair()
        if found is None:
            counts["refused by sbatch"] += 1
            continue
        done += 1
        state, started, words, reason = found
        counts[state.value] += 1
        if state is FitState.UNKNOWN:
            print("unknown", words, started, reason, flush=True)
            continue
        is_right = started == (state is FitState.NOW)
        counts["right" if is_right else "wrong"] += 1
        if not is_right:
            print("wrong:", state.value, "started" if started else reason, " ".join(words), flush=True)
            print("  beside:", world.slurm("squeue", "-h", "-o", "%i %N %C %m %b %h").replace("\n", "; "), flush=True)
            print("  nodes:", world.slurm("sinfo", "-h", "-N", "-o", "%N %t").replace("\n", "; "), flush=True)


if __name__ == "__main__":
    sys.exit(main())
