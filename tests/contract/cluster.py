"""A small real Slurm for the contract suites and the recordings: munged, slurmctld and some slurmds in one folder.

`root` runs everything inside another Debian's folder (debootstrap) with chroot, so that other Slurm versions than the
installed one can be recorded. Only what these suites need; the test bed that people use is `steward-testbed`.
"""

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steward_bed.local_setup import free_ports
from steward_bed.wait import pause_s
from tests.contract.installed import search_path, version
from tests.fakes.until import FACT_S

PARTITIONS = "partitions.conf"
"""Included by slurm.conf."""
_NOTHING = "# No partition.\n"
_IDLE = {"idle", "planned"}
_READY_S = FACT_S


@dataclass(kw_only=True)
class Cluster:
    """A running cluster. `folder` is its path inside `root`; `daemons` are the processes to end."""

    root: Path
    folder: str
    nodes: dict[str, int]
    controller_port: int
    dynamic_port: int
    """Of the one dynamic node that can be there."""
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return {"SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": search_path(self.root)}

    @property
    def prefix(self) -> tuple[str, ...]:
        return () if self.root == Path("/") else ("chroot", str(self.root))

    def path(self, name: str) -> Path:
        return self.root / self.folder.lstrip("/") / name

    def run(self, *argv: str, check: bool = True) -> str:
        """A Slurm command in this cluster; its stdout. Raises AssertionError with both outputs when it fails."""
        done = subprocess.run(
            [*self.prefix, *argv],
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FACT_S,
            check=False,
        )
        assert not check or done.returncode == 0, f"{argv}: rc={done.returncode} {done.stdout} {done.stderr}"
        return done.stdout

    def sbatch(self, *argv: str, script: str = "sleep 300") -> int:
        """Submit a job that runs `script` under sh; its id."""
        path = self.path(f"job-{secrets.token_hex(4)}.sh")
        path.write_text(f"#!/bin/sh\n{script}\n")
        inside = f"{self.folder}/{path.name}"
        return int(
            self.run("sbatch", "--parsable", "-D", self.folder, "-o", "/dev/null", *argv, inside).strip().split(";")[0]
        )

    def show_job(self, job: int) -> str:
        return self.run("scontrol", "-o", "show", "job", str(job))

    def wait(self, sentence: str, holds: Callable[[], bool], deadline_s: float = FACT_S) -> None:
        began = time.monotonic()
        while not holds():
            waited_s = time.monotonic() - began
            assert waited_s < deadline_s, f"not within {deadline_s:g} s: {sentence}\n{self.log_tail()}"
            time.sleep(pause_s(waited_s))

    def wait_job(self, job: int, state: str, deadline_s: float = FACT_S) -> None:
        self.wait(f"job {job} is {state}", lambda: f"JobState={state} " in self.show_job(job), deadline_s)

    def log_tail(self) -> str:
        log = self.path("slurmctld.log")
        return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else "(no slurmctld log)"

    def start(self, name: str, *argv: str) -> None:
        with self.path(f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                [*self.prefix, *argv], env={**os.environ, **self.env}, stdout=out, stderr=out, start_new_session=True
            )

    def start_controller(self) -> None:
        self.start("slurmctld", "slurmctld", "-D")
        self.wait("slurmctld answers", lambda: "UP" in self.run("scontrol", "ping", check=False), _READY_S)

    def stop_controller(self) -> None:
        """It saves its state first, so that nothing is forgotten."""
        self.stop("slurmctld", signal.SIGTERM)

    def start_slurmd(self, node: str) -> None:
        self.start(node, "slurmd", "-D", "-N", node)

    def start_dynamic(self, node: str, feature: str) -> None:
        """A node that slurm.conf does not have registers, drained."""
        words = f"Feature={feature} CPUs=4 RealMemory=500 Gres=gpu:8 State=DRAIN"
        self.start(node, "slurmd", "-D", "-Z", "-N", node, "--conf", words)
        self.wait(f"{node} registers", lambda: "DYNAMIC" in self.run("scontrol", "show", "node", node, check=False))

    def stop(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        daemon = self.daemons.pop(name)
        with contextlib.suppress(ProcessLookupError):
            daemon.send_signal(signal.SIGCONT)
            daemon.send_signal(how)
        daemon.wait(20)

    def reset(self) -> None:
        """No jobs, every node idle and without a reason. `planned` is idle: what backfill had in mind for a node of a
        job that is gone stands until its next pass, 30 s later."""
        self.run("scancel", "--user", "root", check=False)
        self.run("scancel", "--state=PENDING", "--user", "root", check=False)
        self.wait("the queue is empty", lambda: not self.run("squeue", "-h", "--all").strip())
        self._reset_reservations()
        self._reset_partitions()
        for node in self.nodes:
            for state in ("drain", "down"):  # drained first: it must not come back by itself in between
                self.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=reset")
            self.run("scontrol", "update", f"nodename={node}", "state=resume")
        self.wait("all nodes are idle", lambda: set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) <= _IDLE)

    def _reset_reservations(self) -> None:
        for line in self.run("scontrol", "--oneliner", "show", "reservations").splitlines():
            if line.startswith("ReservationName="):
                name = line.split()[0].partition("=")[2]
                self.run("scontrol", "delete", f"partitionname={name}", check=False)
                self.run("scontrol", "delete", f"reservation={name}")

    def _reset_partitions(self) -> None:
        """Those of slurm.conf, open, with the nodes of slurm.conf."""
        for node in self.daemons.keys() - self.nodes.keys() - {"munged", "slurmctld"}:
            self.stop(node)
            self.run("scontrol", "delete", f"nodename={node}", check=False)
        if self.path(PARTITIONS).read_text() != _NOTHING:
            self.path(PARTITIONS).write_text(_NOTHING)
            self.path(f"{PARTITIONS}.good").unlink(missing_ok=True)
            self.run("scontrol", "reconfigure")
            self.wait(
                "no other partition is left", lambda: set(self.run("sinfo", "-h", "-a", "-o", "%R").split()) == {"main"}
            )
        self.run("scontrol", "update", "partitionname=main", "state=up", "maxtime=infinite", "hidden=no")


@contextlib.contextmanager
def running(names: Sequence[str] = ("n1", "n2", "n3"), root: Path = Path("/"), extra: str = "") -> Iterator[Cluster]:
    """A cluster that is up and idle; nothing of it is left afterwards. `extra` are more slurm.conf lines."""
    (root / "tmp").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="steward-cl-", dir=root / "tmp"))
    ports = free_ports(len(names) + 2)
    inside = "/" + str(folder.relative_to(root))
    cluster = Cluster(
        root=root,
        folder=inside,
        nodes=dict(zip(names, ports[2:], strict=True)),
        controller_port=ports[0],
        dynamic_port=ports[1],
    )
    try:
        _write(cluster, extra)
        _bring_up(cluster)
        yield cluster
    finally:
        _take_down(cluster)
        shutil.rmtree(folder, ignore_errors=True)


def _bring_up(cluster: Cluster) -> None:
    f = cluster.folder
    cluster.start("munged", "munged", "-F", "--force", f"--socket={f}/munge.sock", f"--key-file={f}/munge.key",
                  f"--log-file={f}/munge.log", f"--pid-file={f}/munge.pid", f"--seed-file={f}/munge.seed")  # fmt: skip
    cluster.wait("munged listens", lambda: cluster.path("munge.sock").exists(), _READY_S)
    cluster.start_controller()
    for name in cluster.nodes:
        cluster.start_slurmd(name)
    states = ("sinfo", "-h", "-N", "-n", ",".join(cluster.nodes), "-o", "%T")
    cluster.wait("nodes are idle", lambda: set(cluster.run(*states).split()) == {"idle"}, _READY_S)


def _take_down(cluster: Cluster) -> None:
    if "slurmctld" in cluster.daemons:
        cluster.run("scancel", "--user", str(os.getuid()), check=False)
    for name in [n for n in reversed(cluster.daemons) if n != "munged"] + ["munged"]:
        if name in cluster.daemons:
            cluster.stop(name)
    for pid in _stepds(cluster):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _stepds(cluster: Cluster) -> list[int]:
    """slurmstepds and job processes of this cluster: they name its folder, work in it or (26.05) write its log."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if cluster.folder.encode() in _traces(proc) and int(proc.name) != os.getpid():
                found.append(os.getpgid(int(proc.name)))
    return [pgid for pgid in set(found) if pgid != os.getpgid(0)]


def _traces(proc: Path) -> bytes:
    name = (proc / "cmdline").read_bytes()
    files = (proc / "fd").iterdir() if name.startswith(b"slurmstepd") else ()
    links = [os.fsencode(path.readlink()) for path in (proc / "cwd", *files)]
    return b"\n".join([name, (proc / "environ").read_bytes(), *links])


def _write(cluster: Cluster, extra: str) -> None:
    key = cluster.path("munge.key")
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    cluster.path("").chmod(0o755)
    for name in ("state", "spool"):
        cluster.path(name).mkdir(mode=0o755)
    cluster.path("cgroup.conf").write_text(_cgroup(version(cluster.root)))
    cluster.path(PARTITIONS).write_text(_NOTHING)
    cluster.path("slurm.conf").write_text(_conf(cluster) + extra)


def _cgroup(slurm: str) -> str:
    """22.05 does not know CgroupPlugin=disabled; newer ones want it where no cgroup is usable."""
    old = tuple(int(n) for n in re.findall(r"\d+", slurm)[:2]) < (23, 2)
    return "CgroupAutomount=no\n" if old else "CgroupPlugin=disabled\n"


def _conf(cluster: Cluster) -> str:
    f, host = cluster.folder, socket.gethostname().split(".")[0]
    user = "root" if os.getuid() == 0 else os.environ.get("USER", str(os.getuid()))
    nodes = "".join(
        f"NodeName={name} NodeAddr=127.0.0.1 NodeHostname={host} Port={port} CPUs=4 RealMemory=500 Gres=gpu:8"
        " Feature=a,b State=UNKNOWN\n"
        for name, port in cluster.nodes.items()
    )
    # On loopback only, where that works: told so, Slurm listens where the host's own name leads (Debian: 127.0.1.1).
    on_loopback = socket.gethostbyname(host) == "127.0.0.1"
    listening = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n" if on_loopback else ""
    cluster.path("gres.conf").write_text(f"Name=gpu File={f}/gpu[0-7]\n")
    for n in range(8):
        cluster.path(f"gpu{n}").touch()
    return f"""ClusterName=contract
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={cluster.controller_port}
SlurmdPort={cluster.dynamic_port}
MaxNodeCount=64
TreeWidth=65533
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={f}/munge.sock
StateSaveLocation={f}/state
SlurmdSpoolDir={f}/spool/%n
SlurmctldPidFile={f}/slurmctld.pid
SlurmdPidFile={f}/slurmd-%n.pid
SlurmctldLogFile={f}/slurmctld.log
SlurmdLogFile={f}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=0
{listening}{nodes}PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
include {PARTITIONS}
"""
