"""Does what docs/quickstart-admin.md says, on fresh machines: `python3 -m tests.packages.prove`, with a Docker engine.

A controller, three nodes and a login host without Steward and without a compiler, made by hand in one of several ways
(`--site`; several share one build of the packages); the page's own commands; a node is killed under a user's job, which
must run again, as the node must serve again; the user asks why on the login host; a newer build of the packages is
installed; all is purged and nothing may be left.
"""

import argparse
import platform
import re
import secrets
import shutil
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.packages.machines import HEAD, IMAGE, LOGIN, MACHINES, ROOT, Cluster, Site, Unproved, await_fact, run, say
from tests.packages.sites import SITES, decides_on_a_failure

PAGE = ROOT / "docs/quickstart-admin.md"
_RESULTS = ROOT / ".results"
_BLOCK = re.compile(r"^```sh (?P<where>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SLURM_OF = {"bookworm": "22.05", "trixie": "24.11", "testing": "26.05"}
"""By which `docker/build` knows a release."""
_COPIED = ("tests/packages/Dockerfile", "tests/packages/machine-init", "docker/rootfs/usr/local/lib/bed/cgroups")
_MOST_COMMANDS = 10
_MOST_S = 600.0
_TRAIN = """#!/bin/bash
#SBATCH -N 2 --output=/shared/out.txt
echo "run ${SLURM_RESTART_COUNT:-0} on $SLURM_JOB_NODELIST"
srun sleep 600
"""
_LEFT = (
    "find / -xdev -iname '*steward*' -not -path '/proc/*' -not -path '/shared/*' -not -path '/var/log/*'"
    " -not -path '/var/lib/apt/*' -not -path '/var/cache/*' -not -path '/var/lib/systemd/*'; "
    "mount | grep -i steward; grep -rli steward /etc /run 2>/dev/null; pgrep -a steward; true"
)
"""Prints whatever is left of Steward, in no matter which form; logs of what was there may stay."""

_ALIVE = ("proc", "sys", "run", "shared", "tmp", "root", "var/log", "var/lib", "var/cache", "var/spool")
_FILES = "find / -xdev" + "".join(f" -not -path '/{each}/*'" for each in _ALIVE)
"""Prints all files and folders but for those that any machine writes while it runs."""


def blocks(text: str) -> list[tuple[str, str]]:
    """(where, command) of the page, in its order."""
    return [
        (match["where"], line)
        for match in _BLOCK.finditer(text)
        for line in match["text"].splitlines()
        if line.strip() and not line.startswith("#")
    ]


def parts(site: Site) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the page's commands for a site: those of the way in, and those of the way out."""
    found = [each for each in blocks(PAGE.read_text()) if each[0] in site.pages]
    end = next(index for index, (place, _) in enumerate(found) if place == "uninstall")
    return found[:end], found[end:]


def make_image(suite: str) -> None:
    run("docker/base-image", suite)
    with tempfile.TemporaryDirectory() as folder:
        for file in _COPIED:
            shutil.copy(ROOT / file, folder)
        run("docker", "build", "-q", "--build-arg", f"BASE=steward-base:{suite}", "-t", f"{IMAGE}:{suite}", folder)


def built_for(suite: str, folder: Path) -> tuple[Path, Path] | None:
    """Two builds of the packages, made in containers; None for the release of this machine, which builds here."""
    if platform.freedesktop_os_release().get("VERSION_CODENAME") == suite:
        return None
    made = folder / "made", folder / "newer"
    for release, out in enumerate(made, start=1):
        run("docker/build", _SLURM_OF[suite], out, str(release))
    say(f"packages for {suite} are built")
    return made


_PLACES = {"user": (LOGIN, "alice")}
"""Where the page's commands are given, and by whom; others on the controller, by root."""


def follow_page(cluster: Cluster, *, quick: bool, made: Path | None) -> tuple[int, float]:
    """Every command of the page but that of its end; (how many, seconds without the build). `made`: a folder with
    packages, instead of the build."""
    commands, _ = parts(cluster.site)
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
            await_fact("each node's slurmstepd loads the shim", lambda: _shim_is_well(cluster))
        machine, user = _PLACES.get(place, (HEAD, "root"))
        said = cluster.on(machine, f"cd /shared && {command}", user=user)
        taken += time.monotonic() - began
        say(f"{time.monotonic() - began:6.1f} s  {place}: {command}")
        if "doctor" in command or "check" in command:
            print(said)
        if command.startswith("steward init"):
            cluster.site.people(cluster)
    return len(commands), taken


def _connected(cluster: Cluster) -> bool:
    return "3 of 3 connected" in cluster.on(HEAD, "steward status", check=False)


def _shim_is_well(cluster: Cluster) -> bool:
    return "Slurm loads it on n[1-3]" in cluster.on(HEAD, "COLUMNS=300 steward doctor", check=False)


def kill_and_see(cluster: Cluster) -> float:
    """A node of the job dies, and is there again later; seconds until the job runs again elsewhere."""
    await_fact("the job runs", lambda: "run 0" in _output(cluster))
    victim = cluster.on(HEAD, "squeue -h -o %N").strip().replace("n[", "n").split("-")[0].split(",")[0]
    run("docker", "kill", f"{cluster.name}-{victim}")
    took = await_fact("the job runs again", lambda: "run 1" in _output(cluster), 180.0)
    told = cluster.on(LOGIN, "steward explain $(squeue -h -o %i)", user="alice")
    print(told)
    if victim not in told:
        raise Unproved(f"on the login host its user does not read that {victim} failed")
    features = f"scontrol show node {victim} | grep HealthCheck:Passed"
    await_fact("a dead node passes no check", lambda: not cluster.on(HEAD, features, check=False).strip(), 30.0)
    cluster.start(victim)
    say(f"{victim} serves again {cluster.await_service(victim):.1f} s after it was powered on")
    cluster.on(LOGIN, "scancel -u alice", user="alice")
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
    before = cluster.on(HEAD, settings)
    again = ("apt-get install", "steward install")
    print(cluster.paste(HEAD, (command for _, command in blocks(PAGE.read_text()) if command.startswith(again))))
    await_fact("all agents are connected after the upgrade", lambda: _connected(cluster))
    if [cluster.on(machine, settings) for machine in MACHINES] != [before] * len(MACHINES):
        raise Unproved("the upgrade changed settings")


def files_of(cluster: Cluster) -> dict[str, set[str]]:
    """Every file and folder of each machine, but for what any machine writes while it runs."""
    return {machine: set(cluster.on(machine, _FILES).splitlines()) for machine in MACHINES}


def purge(cluster: Cluster, before: dict[str, set[str]]) -> None:
    """`before`: the files that were there before Steward was."""
    for _, command in parts(cluster.site)[1]:
        print(cluster.on(HEAD, command))
    after = files_of(cluster)
    for machine in MACHINES:
        left = cluster.on(machine, _LEFT).strip().splitlines()
        if odd := [*left, *(f"{path} is new" for path in after[machine] - before[machine])]:
            raise Unproved(f"left on {machine} after the purge:\n" + "\n".join(odd))
        if "steward" in (told := cluster.on(machine, "sbatch --version")):
            raise Unproved(f"{machine}'s Slurm still wants the plugin:\n{told}")
        if gone := before[machine] - after[machine]:
            raise Unproved(f"gone from {machine} with the purge: {', '.join(sorted(gone))}")
        for tool in ("cc", "gcc", "make"):
            if cluster.on(machine, f"command -v {tool}", check=False).strip():
                raise Unproved(f"{machine} has {tool}: it was not installed without a compiler")
    if told := cluster.on(HEAD, "scontrol show nodes | grep -i -e HealthCheck: -e steward", check=False).strip():
        raise Unproved(f"left in Slurm after the purge:\n{told}")


def leave_result(site: str, suite: str, **on: str) -> None:
    """For `make tested`, beside the results of `make test-all`."""
    case = ElementTree.Element("testcase", classname="tests.packages.prove", name=f"the_page_of_admins_{site}")
    properties = ElementTree.SubElement(case, "properties")
    for name, value in on.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / f"e2e-packages-{site}-{suite}.xml").write_bytes(ElementTree.tostring(case))


def go_through(name: str, cluster: Cluster, said: argparse.Namespace, kept: Path) -> None:
    """From the bare machines to bare machines again. Raises Unproved. `kept`: a folder for both builds."""
    made = said.made or built_for(said.suite, kept)
    cluster.up()
    say(f"a hand-made cluster of five machines is up: {name}")
    before = files_of(cluster)
    count, taken = follow_page(cluster, quick=said.quick, made=made and made[0])
    took = kill_and_see(cluster)
    say(f"the job ran again {took:.1f} s after its node was killed")
    decides_on_a_failure(cluster)
    cluster.site.story(cluster)
    if not made:
        made = kept / "made", kept / "newer"
        shutil.copytree(cluster.shared / "steward", made[0])
        run("sh", "-c", f'make packages ARGS="--reuse --release 2 --out {made[1]}"')
    said.made = made
    upgrade(cluster, made[1])
    say("upgraded")
    system = cluster.on(HEAD, "sinfo -V; . /etc/os-release; echo $PRETTY_NAME").splitlines()
    purge(cluster, before)
    say(f"purged, nothing left; {count} commands, {taken:.0f} s without the build")
    if count > _MOST_COMMANDS or taken > _MOST_S:
        raise Unproved(f"more than {_MOST_COMMANDS} commands or {_MOST_S:g} s")
    leave_result(name, said.suite, slurm=system[0].split()[-1], os=system[1], bed="packages")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use what the last build of packages fetched.")
    parser.add_argument("--keep", action="store_true", help="Leave the machines there.")
    parser.add_argument("--suite", default="bookworm", choices=_SLURM_OF, help="Debian release of the machines.")
    parser.add_argument("--made", type=Path, nargs=2, metavar=("FOLDER", "NEWER"), help="Two builds of the packages.")
    parser.add_argument(
        "--site", nargs="+", default=["ordinary"], choices=SITES, help="How clusters were made by hand."
    )
    said = parser.parse_args()
    make_image(said.suite)
    with tempfile.TemporaryDirectory(prefix="steward-packages-") as kept:
        failed = [name for name in said.site if not is_proved(name, said, Path(kept))]
    if failed:
        say(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


def is_proved(name: str, said: argparse.Namespace, kept: Path) -> bool:
    """Whether the page's promises come true on this site, on machines of its own."""
    shared = Path(tempfile.mkdtemp(prefix="steward-packages-"))
    shared.chmod(0o1777)
    (shared / "train.sh").write_text(_TRAIN)
    cluster = Cluster(
        name=f"steward-packages-{secrets.token_hex(3)}", shared=shared, suite=said.suite, site=SITES[name]
    )
    try:
        go_through(name, cluster, said, kept)
    except Unproved as error:
        say(f"FAILED: {name}: {error}")
        return False
    finally:
        if not said.keep:
            cluster.down()
            shutil.rmtree(shared, ignore_errors=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
