"""Does what docs/quickstart-admin.md says, on fresh machines: `python3 -m tests.packages.prove`, with a Docker engine.

A controller, three nodes and a login host without Steward and without a compiler; the page's own commands; a node is
killed under a user's job, which must run again; the user asks why on the login host; a newer build of the packages is
installed; all is purged and nothing may be left.
"""

import argparse
import platform
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/quickstart-admin.md"
_RESULTS = ROOT / ".results"
_BLOCK = re.compile(r"^```sh (?P<where>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_IMAGE = "steward-hand-made"
_SLURM_OF = {"bookworm": "22.05", "trixie": "24.11", "testing": "26.05"}
"""By which `docker/build` knows a release."""
_IMAGE_FILES = ("tests/packages/Dockerfile", "tests/packages/machine-init", "docker/rootfs/usr/local/lib/bed/cgroups")
_NODES = ("n1", "n2", "n3")
_LOGIN = "login1"
_MACHINES = ("head", _LOGIN, *_NODES)
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
    suite: str

    def up(self) -> None:
        site = self.shared / "site"
        site.mkdir()
        (site / "slurm.conf").write_text(_SLURM_CONF)
        (site / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (site / "munge.key").write_bytes(secrets.token_bytes(64))
        (site / "ssh").mkdir()
        for key in ("host", "root"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", site / "ssh" / key)
        run("docker", "network", "create", self.name)
        for machine in _MACHINES:
            run(
                *("docker", "run", "-d", "--name", f"{self.name}-{machine}", "--hostname", machine),
                *("--network", self.name, "--network-alias", machine, "-v", f"{self.shared}:/shared"),
                *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined"),
                *("--security-opt", "apparmor=unconfined", "--tmpfs", "/run:exec", "--tmpfs", "/run/lock"),
                *("--cgroupns", "host", f"{_IMAGE}:{self.suite}"),
            )
        self.write_hosts()
        await_fact("three idle nodes", lambda: self.on("head", "sinfo -h -o %D -t idle", check=False).strip() == "3")

    def write_hosts(self) -> None:
        """The names of all, in every machine's /etc/hosts, as a site's stay when a machine dies. Docker takes a dead
        one's name away, and slurmctld stands still for 20 s while it cannot resolve that of a node that is set DOWN."""
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        places = {each: run("docker", "inspect", "-f", form, f"{self.name}-{each}").strip() for each in _MACHINES}
        text = "".join(f"{address} {machine}\\n" for machine, address in places.items())
        for machine in _MACHINES:
            self.on(machine, f"printf '127.0.0.1 localhost\\n{text}' > /etc/hosts")

    def down(self) -> None:
        for machine in _MACHINES:
            run("docker", "rm", "-f", "-v", f"{self.name}-{machine}", check=False)
        run("docker", "network", "rm", self.name, check=False)

    def on(self, machine: str, command: str, *, user: str = "root", check: bool = True) -> str:
        return run("docker", "exec", "-u", user, "-w", "/", f"{self.name}-{machine}", "sh", "-c", command, check=check)

    def where(self, place: str) -> Sequence[tuple[str, str]]:
        """(machine, user) for a word of the page."""
        return ((_LOGIN, "alice"),) if place == "user" else (("head", "root"),)


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


def make_image(suite: str) -> None:
    run("docker/base-image", suite)
    with tempfile.TemporaryDirectory() as folder:
        for file in _IMAGE_FILES:
            shutil.copy(ROOT / file, folder)
        run("docker", "build", "-q", "--build-arg", f"BASE=steward-base:{suite}", "-t", f"{_IMAGE}:{suite}", folder)


def built_for(suite: str, folder: Path) -> tuple[Path, Path] | None:
    """Two builds of the packages, made in containers; None for the release of this machine, which builds here."""
    if platform.freedesktop_os_release().get("VERSION_CODENAME") == suite:
        return None
    made = folder / "made", folder / "newer"
    for release, out in enumerate(made, start=1):
        run("docker/build", _SLURM_OF[suite], out, str(release))
    say(f"packages for {suite} are built")
    return made


def follow_page(cluster: Cluster, *, quick: bool, made: Path | None) -> tuple[int, float]:
    """Every command of the page but that of its end; (how many, seconds without the build). `made`: a folder with
    packages, instead of the build."""
    commands = [each for each in blocks(PAGE.read_text()) if each[0] != "uninstall"]
    taken = 0.0
    for place, command in commands:
        began = time.monotonic()
        if place == "build" and made is not None:
            shutil.copytree(made, cluster.shared / "steward")
            continue
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
    told = cluster.on(_LOGIN, "steward explain $(squeue -h -o %i)", user="alice")
    print(told)
    if victim not in told:
        raise Unproved(f"on the login host its user does not read that {victim} failed")
    run("docker", "start", f"{cluster.name}-{victim}")
    cluster.write_hosts()
    await_fact(
        f"{victim} is mended",
        lambda: "ok" in cluster.on("head", f"ssh -o ConnectTimeout=2 {victim} echo ok", check=False),
    )
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
    settings = "sha256sum < /etc/steward/steward.toml"
    before = cluster.on("head", settings)
    for _, command in blocks(PAGE.read_text()):
        if command.startswith(("apt-get install", "steward install")):
            print(cluster.on("head", command))
    await_fact("all agents are connected after the upgrade", lambda: _connected(cluster))
    if [cluster.on(machine, settings) for machine in _MACHINES] != [before] * len(_MACHINES):
        raise Unproved("the upgrade changed settings")


def purge(cluster: Cluster) -> None:
    command = next(command for place, command in blocks(PAGE.read_text()) if place == "uninstall")
    print(cluster.on("head", command))
    for machine in _MACHINES:
        if left := cluster.on(machine, _LEFT).strip():
            raise Unproved(f"left on {machine} after the purge:\n{left}")
        for tool in ("cc", "gcc", "make"):
            if cluster.on(machine, f"command -v {tool}", check=False).strip():
                raise Unproved(f"{machine} has {tool}: it was not installed without a compiler")


def leave_result(suite: str, **on: str) -> None:
    """For `make tested`, beside the results of `make test-all`."""
    case = ElementTree.Element("testcase", classname="tests.packages.prove", name="the_page_of_admins")
    properties = ElementTree.SubElement(case, "properties")
    for name, value in on.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / f"e2e-packages-{suite}.xml").write_bytes(ElementTree.tostring(case))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use what the last build of packages fetched.")
    parser.add_argument("--keep", action="store_true", help="Leave the machines there.")
    parser.add_argument("--suite", default="bookworm", choices=_SLURM_OF, help="Debian release of the machines.")
    parser.add_argument("--made", type=Path, nargs=2, metavar=("FOLDER", "NEWER"), help="Two builds of the packages.")
    said = parser.parse_args()
    make_image(said.suite)
    shared = Path(tempfile.mkdtemp(prefix="steward-packages-"))
    shared.chmod(0o1777)
    (shared / "train.sh").write_text(_TRAIN)
    cluster = Cluster(name=f"steward-packages-{secrets.token_hex(3)}", shared=shared, suite=said.suite)
    try:
        made = said.made or built_for(said.suite, shared)
        cluster.up()
        say("a hand-made cluster of five machines is up")
        count, taken = follow_page(cluster, quick=said.quick, made=made and made[0])
        took = kill_and_see(cluster)
        say(f"the job ran again {took:.1f} s after its node was killed")
        newer = made[1] if made else shared / "newer"
        if not made:
            run("sh", "-c", f'make packages ARGS="--reuse --release 2 --out {newer}"')
        upgrade(cluster, newer)
        say("upgraded")
        system = cluster.on("head", "sinfo -V; . /etc/os-release; echo $PRETTY_NAME").splitlines()
        purge(cluster)
        say(f"purged, nothing left; {count} commands, {taken:.0f} s without the build")
        if count > _MOST_COMMANDS or taken > _MOST_S:
            raise Unproved(f"more than {_MOST_COMMANDS} commands or {_MOST_S:g} s")
        leave_result(said.suite, slurm=system[0].split()[-1], os=system[1], bed="packages")
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
