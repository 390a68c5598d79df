"""All that one ordinary user does at once for an hour: run as that user, by the system's Python.

    hostile_acts.py SECONDS SLURMD_PORT HEAD_PORT PAGE_PORT OTHERS_JOB JOBS_DIR MUNGE_SOCKET FREE_PORTS SOCKET...

FREE_PORTS is a file of ports that nobody else on this machine is given meanwhile: other test beds run here, too.

Each act is a thread that does its worst and then takes a breath: the machine of a test bed has few processors, and they
are the head's, the agents' and Slurm's as well.
"""

import contextlib
import json
import os
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

HALF_OPEN = 700
CLAIMS = 100
LINES = (
    "opted job=0 uid={uid} mode=1 restart=0 batch=1",
    "opted job={other} uid={uid} mode=any:1000 restart=1 elastic=4096:1",
    "opted job={some} uid={uid} mode=1 restart=0 elastic=4",
    "opted job={some} uid={uid} mode=any:3 restart=2",
    "log job={some} restart=0 size=9999999999999999999 out=/dev/zero",
    "exit job={other} step=0 restart=0 task=0 status=9",
    "ask kind=step job={other} step=x{some} uid={uid} mode=any:5 attempt=1 restart=0 status=256",
    "ask kind=batch job={some} step=batch uid={uid} mode=any:5 attempt=1 restart=0 status=256",
    "deep run=x here=n1 check=gpu.gemm node=n1 outcome=failed value=nan seconds=inf",
    "verdict",
)
PATHS = (
    "/",
    "/v1/nodes",
    "/v1/events?limit=5000",
    "/v1/jobs",
    "/metrics",
    "/v1/explain/node/n[1-99999999]",
    "/x" * 900,
)
ODD = ("(null)", "x JobState=FAILED", "a\n7|7|n9", "\u202e<script>alert(1)</script>", "|" * 40)
LISTS = ("n1,", "n1,,n2", "n1 n2", "n[1-6],n[1-6]", ",".join(f"n{at % 7 + 1}" for at in range(9000)))


class Acts:
    def __init__(
        self,
        until: float,
        ports: list[int],
        other: str,
        folders: Path,
        munge: str,
        free: list[int],
        sockets: list[str],
    ) -> None:
        self.until, self.other, self.folders, self.munge, self.sockets = until, other, folders, munge, sockets
        self.slurmd, self.head, self.page = ports
        self.free = free
        self.uid = os.getuid()

    def run(self) -> None:
        acts: list[tuple[Callable[[], None], float]] = [
            (lambda: self.hold(self.slurmd, HALF_OPEN, 9.0), 1.0),
            (lambda: self.hold(self.head, 400, 5.0, b"\0\0\xff\0{" * 9), 1.0),
            (
                lambda: self.hold(
                    self.page, 300, 5.0, b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n{"
                ),
                3.0,
            ),
            *((lambda path=path: self.say(path), 0.05) for path in self.sockets),
            (self.crowd, 5.0),
            (self.take_ports, 20.0),
            (self.claim, 2.0),
            (self.read_pages, 1.0),
            (self.use_munge, 5.0),
            (self.submit, 20.0),
        ]
        threads = [threading.Thread(target=self.again, args=act) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def again(self, act: Callable[[], None], rest_s: float) -> None:
        while time.time() < self.until:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                act()
            time.sleep(min(rest_s, max(0.0, self.until - time.time())))

    def hold(self, port: int, count: int, seconds: float, said: bytes = b"") -> None:
        with contextlib.ExitStack() as held:
            for _ in range(count):
                one = held.enter_context(socket.socket())
                one.settimeout(0.2)
                with contextlib.suppress(OSError):
                    one.connect(("127.0.0.1", port))
                    one.sendall(said)
            time.sleep(seconds)

    def say(self, path: str) -> None:
        line = random.choice(LINES).format(uid=self.uid, other=self.other, some=random.randrange(1, 5000))
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(2)
            one.connect(path)
            one.sendall(f"steward/1 {line}\n".encode())
            one.recv(4096)

    def crowd(self) -> None:
        path = random.choice(self.sockets)
        with contextlib.ExitStack() as held:
            for _ in range(3000):
                one = held.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                with contextlib.suppress(OSError):
                    one.connect(path)

    def take_ports(self) -> None:
        with contextlib.ExitStack() as held:
            for port in self.free:
                with contextlib.suppress(OSError):
                    held.enter_context(socket.socket()).bind(("", port))
            for at in range(200):
                with contextlib.suppress(OSError):
                    path = random.choice(self.sockets)
                    with socket.socket(socket.AF_UNIX) as one:
                        one.settimeout(2)
                        one.connect(path)
                        one.sendall(
                            f"steward/1 opted job={6000 + at} uid={self.uid} mode=1 restart=0 elastic=4\n".encode()
                        )
                        one.recv(4096)

    def claim(self) -> None:
        """Steps of jobs that are to come, in folders of his own; now and then a pipe, a link, a long or deep one."""
        for folder in [one for one in self.folders.iterdir() if one.name.endswith(f"-{self.uid}")][:CLAIMS]:
            with contextlib.suppress(OSError):
                file, kind = folder / "progress", random.randrange(8)
                file.unlink(missing_ok=True)
                if kind < 4:
                    file.write_text(json.dumps({"step": random.randrange(10**9), "checkpoint": "/" + "x" * 200}))
                elif kind == 4:
                    os.mkfifo(file)
                elif kind == 5:
                    file.symlink_to("/dev/zero")
                elif kind == 6:
                    file.touch()
                    os.truncate(file, 1 << 40)
                else:
                    (folder / "/".join(["d"] * 200)).mkdir(parents=True)

    def read_pages(self) -> None:
        for path in PATHS:
            with socket.socket() as one:
                one.settimeout(5)
                one.connect(("127.0.0.1", self.page))
                one.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.page}\r\nConnection: close\r\n\r\n".encode())
                while one.recv(1 << 16):
                    pass

    def use_munge(self) -> None:
        argv = ["munge", "-n", f"--socket={self.munge}"]
        asking = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(40)]
        for one in asking:
            one.wait()

    def submit(self) -> None:
        """Short jobs that fail, all opted in, and jobs that wait with what no list and no name is like."""
        common = ["sbatch", "--parsable", "--output=/dev/null", "--mem=8", "--chdir=/tmp", "-n1"]
        quick = [*common, "--auto-resume=any:2", "--array=1-40%8", "--wrap=exit 1"]
        held = [
            *common,
            "--hold",
            f"--job-name={random.choice(ODD)}",
            f"--comment={random.choice(ODD)}",
            "--wrap=sleep 9",
        ]
        subprocess.run(quick, capture_output=True, timeout=30, check=False)
        job = subprocess.run(held, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
        change = ["scontrol", "update", f"jobid={job}", f"excnodelist={random.choice(LISTS)}"]
        subprocess.run(change, capture_output=True, timeout=30, check=False)
        mine = subprocess.run(
            ["squeue", "-h", "-u", str(self.uid), "-t", "PD", "-o", "%A"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        ).stdout.split()
        for old in mine[:-20]:
            subprocess.run(["scancel", old], capture_output=True, timeout=30, check=False)


def main() -> None:
    seconds, slurmd, head, page, other, folders, munge, free, *sockets = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ports = [int(slurmd), int(head), int(page)]
    theirs = [int(port) for port in Path(free).read_text().split()]
    Acts(time.time() + float(seconds), ports, other, Path(folders), munge, theirs, sockets).run()
    print("done", flush=True)


if __name__ == "__main__":
    main()
