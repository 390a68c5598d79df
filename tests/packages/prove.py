"""Does what docs/quickstart-admin.md says, on fresh machines: `python3 -m tests.packages.prove`, with a Docker engine.

A controller and three nodes without Steward and without a compiler; the page's own commands; a node is killed under a
user's job, which must run again; a newer build of the packages is installed; all is purged and nothing may be left.
"""

import argparse
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/quickstart-admin.md"
_BLOCK = re.compile(r"^```sh (?P<where>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_IMAGE = "steward-hand-made:bookworm"
_IMAGE_FILES = ("tests/packages/Dockerfile", "tests/packages/machine-init", "docker/rootfs/usr/local/lib/bed/cgroups")
_NODES = ("n1", "n2", "n3")
_MACHINES = ("head", *_NODES)
_MOST_COMMANDS = 10
_MOST_S = 600.0
_TRAIN = """#!/bin/bash
#SBATCH -N 2 --output=/shared/out.txt
echo "run ${SLURM_RESTART_COUNT:-0} on $SLURM_JOB_NODELIST"
srun sleep 600
"""
_SLURM_CONF = """ClusterName=handmade
SlurmctldHost=head
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=n[1-3] CPUs=2 RealMemory=200 State=UNKNOWN
PartitionName=main Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP
"""
_LEFT = (
    "find / -xdev -iname '*steward*' -not -path '/proc/*' -not -path '/shared/*' -not -path '/var/log/*'"
    " -not -path '/var/lib/apt/*' -not -path '/var/cache/*' -not -path '/var/lib/systemd/*'; "
    "mount | grep -i steward; grep -rli steward /etc /run 2>/dev/null; pgrep -a steward; true"
)
"""Prints whatever is left of Steward, in no matter which form; logs of what was there may stay."""


def blocks(text: str) -> list[tuple[str, str]]:
    """(where, command) of the page, in its order."""
    return [
        (match["where"], line)
        for match in _BLOCK.finditer(text)
        for line in match["text"].splitlines()
        if line.strip() and not line.startswith("#")
    ]


def run(*argv: str | Path, check: bool = True) -> str:
    """Both outputs. Ends all of this when a command fails."""
    done = subprocess.run(list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=ROOT)
    said = done.stdout.decode(errors="replace")
    if check and done.returncode:
        raise Unproved(f"{' '.join(map(str, argv))[:300]}\nended with {done.returncode}:\n{said[-3000:]}")
    return said


class Unproved(Exception):
    """What the page promises did not come true."""


@dataclass(kw_only=True)
class Cluster:
    """Containers `NAME-head`, ... on a network of their own; `shared` is the folder that all of them have."""

    name: str
    shared: Path
    times: dict[str, float] = field(default_factory=dict)

    def up(self) -> None:
        site = self.shared / "site"
        site.mkdir()
        (site / "slurm.conf").write_text(_SLURM_CONF)
        (site / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (site / "munge.key").write_bytes(secrets.token_bytes(64))
        run("docker", "network", "create", self.name)
        for machine in _MACHINES:
            run(
                *("docker", "run", "-d", "--name", f"{self.name}-{machine}", "--hostname", machine),
                *("--network", self.name, "--network-alias", machine, "-v", f"{self.shared}:/shared"),
                *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined"),
                *("--security-opt", "apparmor=unconfined", "--tmpfs", "/run:exec", "--tmpfs", "/run/lock"),
                *("--cgroupns", "host", _IMAGE),
            )
        await_fact("three idle nodes", lambda: self.on("head", "sinfo -h -o %D -t idle", check=False).strip() == "3")

    def down(self) -> None:
        for machine in _MACHINES:
            run("docker", "rm", "-f", "-v", f"{self.name}-{machine}", check=False)
        run("docker", "network", "rm", self.name, check=False)

    def on(self, machine: str, command: str, *, user: str = "root", check: bool = True) -> str:
        return run("docker", "exec", "-u", user, "-w", "/", f"{self.name}-{machine}", "sh", "-c", command, check=check)

    def where(self, place: str) -> Sequence[tuple[str, str]]:
        """(machine, user) for a word of the page."""
        if place == "user":
            return (("head", "alice"),)
        return (("head", "root"),) if place == "controller" else tuple((node, "root") for node in _NODES)


def await_fact(what: str, is_so: Callable[[], bool], limit_s: float = 120.0) -> float:
    """Seconds that it took. Raises Unproved."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > limit_s:
            raise Unproved(f"not within {limit_s:g} s: {what}")
        time.sleep(0.5)
    return time.monotonic() - began


def say(text: str) -> None:
    print(f"packages: {text}", file=sys.stderr, flush=True)


def make_image() -> None:
    run("docker/base-image", "bookworm")
    with tempfile.TemporaryDirectory() as folder:
        for file in (
            "tests/packages/Dockerfile",
            "tests/packages/machine-init",
            "docker/rootfs/usr/local/lib/bed/cgroups",
        ):
            shutil.copy(ROOT / file, folder)
        run("docker", "build", "-q", "-t", _IMAGE, folder)


def follow_page(cluster: Cluster, *, quick: bool) -> tuple[int, float]:
    """Every command of the page but that of its end; (how many, seconds without the build)."""
    commands = [each for each in blocks(PAGE.read_text()) if each[0] != "uninstall"]
    taken = 0.0
    for place, command in commands:
        began = time.monotonic()
        if place == "build":
            built = command.replace("/shared", str(cluster.shared))
            run("sh", "-c", built.replace('ARGS="', 'ARGS="--reuse ') if quick else built)
            say(f"{time.monotonic() - began:6.1f} s  build: {command}")
            continue
        if command.startswith("steward doctor"):
            await_fact("all agents are connected", lambda: _connected(cluster))
        for machine, user in cluster.where(place):
            said = cluster.on(machine, f"cd /shared && {command}", user=user, check="doctor" not in command)
        taken += time.monotonic() - began
        say(f"{time.monotonic() - began:6.1f} s  {place}: {command}")
        if "doctor" in command or "check" in command:
            print(said)
    return len(commands), taken


def _connected(cluster: Cluster) -> bool:
    return "3 of 3 connected" in cluster.on("head", "steward status", check=False)


def kill_and_see(cluster: Cluster) -> float:
    """A node of the job dies; seconds until the job runs again elsewhere."""
    await_fact("the job runs", lambda: "run 0" in _output(cluster))
    victim = cluster.on("head", "squeue -h -o %N").strip().replace("n[", "n").split("-")[0].split(",")[0]
    run("docker", "kill", f"{cluster.name}-{victim}")
    took = await_fact("the job runs again", lambda: "run 1" in _output(cluster), 180.0)
    print(cluster.on("head", "steward explain $(squeue -h -o %i)"))
    return took


def _output(cluster: Cluster) -> str:
    file = cluster.shared / "out.txt"
    return file.read_text() if file.exists() else ""


def upgrade(cluster: Cluster, packages: Path) -> None:
    """A newer build, with the lines of the page; agents come back, settings stay."""
    for file in cluster.shared.glob("steward/*.deb"):
        file.unlink()
    for file in packages.glob("*.deb"):
        shutil.copy(file, cluster.shared / "steward")
    for place, command in blocks(PAGE.read_text()):
        if command.startswith("apt-get install"):
            for machine, user in cluster.where(place):
                if machine == "head" or cluster.on(machine, "true", check=False) == "":
                    cluster.on(machine, command, user=user)
    await_fact(
        "the head answers after the upgrade", lambda: "nodes " in cluster.on("head", "steward status", check=False)
    )


def purge(cluster: Cluster) -> None:
    command = next(command for place, command in blocks(PAGE.read_text()) if place == "uninstall")
    for machine in (*_NODES, "head"):
        if "Up" not in run("docker", "ps", "--filter", f"name={cluster.name}-{machine}", "--format", "{{.Status}}"):
            continue
        cluster.on(machine, command)
        if left := cluster.on(machine, _LEFT).strip():
            raise Unproved(f"left on {machine} after the purge:\n{left}")
        for tool in ("cc", "gcc", "make"):
            if cluster.on(machine, f"command -v {tool}", check=False).strip():
                raise Unproved(f"{machine} has {tool}: it was not installed without a compiler")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use what the last build of packages fetched.")
    parser.add_argument("--keep", action="store_true", help="Leave the machines there.")
    said = parser.parse_args()
    make_image()
    shared = Path(tempfile.mkdtemp(prefix="steward-packages-"))
    shared.chmod(0o1777)
    (shared / "train.sh").write_text(_TRAIN)
    cluster = Cluster(name=f"steward-packages-{secrets.token_hex(3)}", shared=shared)
    try:
        cluster.up()
        say("a hand-made cluster of four machines is up")
        count, taken = follow_page(cluster, quick=said.quick)
        took = kill_and_see(cluster)
        say(f"the job ran again {took:.1f} s after its node was killed")
        newer = shared / "newer"
        run("sh", "-c", f'make packages ARGS="--reuse --release 2 --out {newer}"')
        upgrade(cluster, newer)
        say("upgraded")
        purge(cluster)
        say(f"purged, nothing left; {count} commands, {taken:.0f} s without the build")
        if count > _MOST_COMMANDS or taken > _MOST_S:
            raise Unproved(f"more than {_MOST_COMMANDS} commands or {_MOST_S:g} s")
    except Unproved as error:
        say(f"FAILED: {error}")
        return 1
    finally:
        if not said.keep:
            cluster.down()
            shutil.rmtree(shared, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
