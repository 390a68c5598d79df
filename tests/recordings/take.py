"""Takes the recordings: `python -m tests.recordings.take [--root DIR]...`.

Brings up a small real Slurm (the installed one, and one for each Debian folder given with --root, run there with
chroot), plays one story on it and writes what its commands answer to `tests/recordings/VERSION/`. Run it again when the
story or a Slurm version is added; the tests in tests/unit/slurm say what the answers must mean.
"""

import argparse
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.contract.cluster import Cluster, running
from tests.contract.conftest import beside
from tests.contract.installed import missing
from tests.contract.installed import version as version_under

HERE = Path(__file__).parent
NODES = ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8")
HOSTILE = "x JobState=FAILED UserId=root(0)\nJobId=77 JobState=FAILED"
REASON = "x State=IDLE [root@2020-01-01] NodeName=n9"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--root", type=Path, action="append", default=[], help="another Debian's folder with Slurm in it"
    )
    for root in [Path("/"), *parser.parse_args().root]:
        absent = missing(root)
        if absent:
            sys.exit(f"take: {', '.join(absent)} not found under {root}: install slurmctld, slurmd and munge there")
        with running(NODES, root) as cluster:
            folder = take(cluster, version_under(root))
        print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def take(cluster: Cluster, slurm: str) -> Path:
    """Play the story on an idle cluster and write the answers of this Slurm; the folder."""
    folder = HERE / slurm
    folder.mkdir(exist_ok=True)
    play_jobs(cluster)
    play_nodes(cluster)
    record = Recorder(cluster, folder)
    record.told("nodes", "nodes -")
    record.told("jobs", "jobs -")
    record.answer("version", ("scontrol", "--version"))
    record.refusals(cluster)
    cluster.stop_controller()
    record.told("nodes-no-controller", "nodes -")
    record.told("jobs-no-controller", "jobs -")
    return folder


def play_jobs(cluster: Cluster) -> None:
    """Jobs 1 to 13, in this order."""

    def job(*options: str, script: str = "sleep 300", until: str = "RUNNING") -> int:
        number = cluster.sbatch(*options, script=script)
        cluster.wait_job(number, until)
        return number

    job("-J", HOSTILE, "-w", "n1", "-x", "n3,n4")
    job("-J", "no-requeue", "--no-requeue", "-w", "n1")
    job("-J", "exit3", script="exit 3", until="FAILED")
    job("-J", "segv", script="kill -11 $$", until="FAILED")
    cluster.run("scancel", str(job("-J", "cancelled", "-w", "n2")))
    cluster.wait_job(5, "CANCELLED")
    job("-J", "held", "-H", until="PENDING")
    cluster.run("scontrol", "requeuehold", str(job("-J", "requeue-held", "-w", "n2")))
    cluster.wait_job(7, "PENDING")
    cluster.run("scontrol", "requeue", str(job("-J", "requeued", "-w", "n2")))
    cluster.wait_job(8, "PENDING")
    job(os.fsdecode(b"-Jbad \xff\xfe utf-8"), "-w", "n2")
    cluster.sbatch("-J", "array", "--array=0-3%1", "-w", "n2", script="sleep 300")
    cluster.wait("the first task runs", lambda: "JobState=RUNNING" in cluster.show_job(10))
    cluster.sbatch("-J", "het", "-w", "n2", ":", "-w", "n1", script="sleep 300")
    cluster.wait("the het job runs", lambda: cluster.show_job(12).count("JobState=RUNNING") == 2)
    stuck = job("-J", "completing", "-w", "n8")
    cluster.daemons["n8"].send_signal(signal.SIGSTOP)
    cluster.run("scancel", str(stuck))
    cluster.wait_job(stuck, "COMPLETING")


def play_nodes(cluster: Cluster) -> None:
    """n1 busy, n2 draining, n3 down for us, n4 the admin's command, n5 hostile, n6 Slurm's own word, n7 resumed."""

    def admin(node: str, state: str, reason: str = "") -> None:
        words = [f"nodename={node}", f"state={state}", *([f"reason={reason}"] if reason else [])]
        cluster.run("scontrol", "update", *words)

    admin("n2", "drain", "steward:xid:drain:c1")
    admin("n3", "drain", "steward:lost:drain:c2")
    admin("n3", "down", "steward:lost:down:c2")
    admin("n4", "fail", "Action:Replace")
    admin("n5", "drain", REASON)
    admin("n6", "down", "Not responding")
    admin("n7", "drain", "steward:disk:drain:c3")
    admin("n7", "resume")
    cluster.wait("n7 is idle", lambda: cluster.run("sinfo", "-h", "-n", "n7", "-o", "%T").split() == ["idle"])


REFUSED: tuple[tuple[str, ...], ...] = (
    ("requeue", "999999"),
    ("requeue", "6"),
    ("requeue", "2"),
    ("update", "jobid=1", "excnodelist=n2"),
    ("update", "jobid=999999", "starttime=now"),
    ("update", "nodename=n1", "state=resume"),
    ("update", "nodename=n1,n99", "state=drain", "reason=x"),
    ("update", "nodename=n1", "state=drain"),
    ("update", "nodename=n1", "state=dance", "reason=x"),
)


class Recorder:
    """Runs commands in the cluster and writes down what they answer, without what is particular to this machine."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._folder = folder
        self._cluster = cluster
        self._env = {**os.environ, **cluster.env, "TZ": "UTC", "SLURM_BITSTR_LEN": "0"}

    def answer(self, name: str, argv: tuple[str, ...]) -> None:
        """stdout as it came (it need not be UTF-8), with status and stderr beside it."""
        done = self._run(argv)
        (self._folder / f"{name}.stdout").write_bytes(self._scrub(done.stdout))
        (self._folder / f"{name}.json").write_text(self._told(argv, done, stdout=""))

    def told(self, name: str, question: str) -> None:
        """The answer of steward-slurm."""
        done = self._run(beside(self._cluster)[len(self._cluster.prefix) :], f"{question}\n".encode())
        host = socket.gethostname().split(".")[0].encode()
        told = done.stdout.replace(b"\t%b\t" % host, b"\t%b\t" % (b"h" * len(host)))  # as long: the answer is counted
        (self._folder / f"{name}.stdout").write_bytes(told)

    def refusals(self, cluster: Cluster) -> None:
        told = [json.loads(self._told(("scontrol", *words), self._run(("scontrol", *words)))) for words in REFUSED]
        denied = self._run(("setpriv", "--reuid=65534", "scontrol", "requeue", "1"))
        told.append(json.loads(self._told(("scontrol", "requeue", "1", "(as nobody)"), denied)))
        (self._folder / "refusals.json").write_text(json.dumps(told, indent=1) + "\n")

    def _run(self, argv: tuple[str, ...], input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [*self._cluster.prefix, *argv]
        return subprocess.run(command, env=self._env, input=input, capture_output=True, timeout=60, check=False)

    def _told(self, argv: tuple[str, ...], done: subprocess.CompletedProcess[bytes], stdout: str | None = None) -> str:
        def text(raw: bytes) -> str:
            return self._scrub(raw).decode("utf-8", "replace")

        told = {
            "argv": list(argv),
            "returncode": done.returncode,
            "stderr": text(done.stderr),
            "stdout": text(done.stdout) if stdout is None else stdout,
        }
        return json.dumps(told, indent=1) + "\n"

    def _scrub(self, raw: bytes) -> bytes:
        host = socket.gethostname().split(".")[0]
        for old, new in ((self._cluster.folder, "/tmp/cluster"), (platform.release(), "6.1.0")):
            raw = raw.replace(old.encode(), new.encode()).replace(old.replace("/", "\\/").encode(), new.encode())
        return re.sub(rf'"{re.escape(host)}"'.encode(), b'"head"', raw)


if __name__ == "__main__":
    main()
