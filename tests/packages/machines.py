"""A hand-made Slurm cluster of five containers that are machines: a controller, a login host, three nodes."""

import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "steward-hand-made"
HEAD, LOGIN = "head", "login1"
NODES = ("n1", "n2", "n3")
MACHINES = (HEAD, LOGIN, *NODES)
_SLURM_CONF = {
    "ClusterName": "handmade",
    "SlurmctldHost": HEAD,
    "SlurmUser": "slurm",
    "AuthType": "auth/munge",
    "StateSaveLocation": "/var/lib/slurm/slurmctld",
    "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "ReturnToService": "2",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
}
CPUS = ("NodeName=n[1-3] CPUs=2 RealMemory=200 State=UNKNOWN",)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"
_EXEC = ("docker", "exec", "-w", "/", "-e", f"PATH={_PATH}")
_PARTITION = "PartitionName=main Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """How a cluster was made by hand. `conf`: lines of slurm.conf that are other than usual; `files`: others beside it;
    `prepare`: commands that a person gave on each machine before Slurm began; `make` writes what they need."""

    conf: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = CPUS
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: str = ""
    make: Callable[[Path], None] = lambda folder: None
    pages: frozenset[str] = frozenset({"build", "controller", "user", "uninstall"})
    """Kinds of the page's commands that such a site gives."""
    people: Callable[["Cluster"], None] = lambda cluster: None
    """What a person fills in after `steward init`."""
    story: Callable[["Cluster"], None] = lambda cluster: None
    """What has to come true there beside the page's own promises."""

    def slurm_conf(self) -> str:
        """Return the text of slurm.conf."""
        keys = (f"{key}={value}" for key, value in {**_SLURM_CONF, **self.conf}.items())
        return "\n".join([*keys, *self.nodes, _PARTITION, ""])


def run(*argv: str | Path, check: bool = True, given: str | None = None) -> str:
    """Both outputs. Ends all of this when a command fails. `given`: its standard input."""
    done = subprocess.run(
        list(map(str, argv)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        cwd=ROOT,
        input=given.encode() if given is not None else None,
    )
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
    site: Site

    def up(self) -> None:
        site = self.shared / "site"
        (site / "slurm").mkdir(parents=True)
        files = {"slurm.conf": self.site.slurm_conf(), "cgroup.conf": "CgroupPlugin=cgroup/v1\n", **self.site.files}
        for name, text in files.items():
            (site / "slurm" / name).write_text(text)
        (site / "prepare").write_text(self.site.prepare)
        self.site.make(site)
        (site / "munge.key").write_bytes(secrets.token_bytes(64))
        (site / "ssh").mkdir()
        for key in ("host", "root"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", site / "ssh" / key)
        run("docker", "network", "create", self.name)
        for machine in MACHINES:
            run(
                *("docker", "run", "-d", "--name", f"{self.name}-{machine}", "--hostname", machine),
                *("--network", self.name, "--network-alias", machine, "-v", f"{self.shared}:/shared"),
                *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined"),
                *("--security-opt", "apparmor=unconfined", "--tmpfs", "/run:exec", "--tmpfs", "/run/lock"),
                *("--cgroupns", "host", f"{IMAGE}:{self.suite}"),
            )
        self.write_hosts()
        await_fact("three idle nodes", lambda: self.on(HEAD, "sinfo -h -o %D -t idle", check=False).strip() == "3")

    def write_hosts(self) -> None:
        """The names of all, in every machine's /etc/hosts, as a site's stay when a machine dies. Docker takes a dead
        one's name away, and slurmctld stands still for 20 s while it cannot resolve that of a node that is set DOWN."""
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        places = {each: run("docker", "inspect", "-f", form, f"{self.name}-{each}").strip() for each in MACHINES}
        text = "".join(f"{address} {machine}\\n" for machine, address in places.items() if address)
        for machine in filter(places.get, MACHINES):
            self.on(machine, f"printf '127.0.0.1 localhost\\n{text}' > /etc/hosts")

    def down(self) -> None:
        for machine in MACHINES:
            run("docker", "rm", "-f", "-v", f"{self.name}-{machine}", check=False)
        run("docker", "network", "rm", self.name, check=False)

    def on(self, machine: str, command: str, *, user: str = "root", check: bool = True) -> str:
        return run(*_EXEC, "-u", user, f"{self.name}-{machine}", "sh", "-c", command, check=check)

    def paste(self, machine: str, commands: Iterable[str]) -> str:
        """Give root's shell all lines at once. Raises Unproved where a command took those after it for its own."""
        end = "each line was carried out"
        text = "".join(f"{each}\n" for each in ("set -e", *commands, f"echo {end}"))
        said = run(*_EXEC, "-i", f"{self.name}-{machine}", "bash", given=text)
        if end not in said:
            raise Unproved(f"pasted as one block, some lines are not carried out:\n{said}")
        return said

    def await_service(self, node: str) -> float:
        """Wait until a job of a user runs on a node again, and nothing of Steward's is on it. Raises Unproved."""
        show = f"scontrol -o show node {node}"

        def is_given_back() -> bool:
            said = self.on(HEAD, show, check=False)
            state = said.partition("State=")[2].split(" ")[0]
            return state in ("IDLE", "MIXED", "ALLOCATED") and "HealthCheck:Passed" in said

        try:
            took = await_fact(f"{node} serves again", is_given_back, 180.0)
            # without accounting, Slurm 23.11 to 25.11 keeps the reason of a node in service until its next job
            self.on(LOGIN, f"srun --immediate=60 -w {node} -N 1 true", user="alice")
            if "steward:" in self.on(HEAD, show):
                raise Unproved(f"{node} serves, and still has our reason")
        except Unproved as error:
            shown = self.on(HEAD, f"{show}; steward explain {node}", check=False)
            raise Unproved(f"{error}\n{shown}") from error
        return took

    def start(self, machine: str) -> None:
        """Power a machine on again. Docker gives it another address."""
        run("docker", "start", f"{self.name}-{machine}")
        self.write_hosts()


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
