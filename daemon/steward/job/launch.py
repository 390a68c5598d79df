"""A launcher for programs that torchrun does not start: `python -m steward.job.launch [--ranks N] COMMAND [ARG...]`.

On each node of an elastic run the launcher waits for the node's rank, starts N processes of the command and, when the
run changes its size, stops them and starts new ones. The processes get torchrun's variables: RANK, LOCAL_RANK,
WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK (the node's), GROUP_WORLD_SIZE (nodes), MASTER_ADDR, MASTER_PORT. Standard
library only.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from steward.job.elastic_link import IGNORE_SIGNALS, CoordinatorLink, missing, own_address

JOIN_S = 86_400.0
"""How long a node waits for a generation."""
ALONE_S = 60.0
"""How long the base waits for a coordinator before it trains alone."""
STOP_S = 15.0
"""The time from SIGTERM to SIGKILL."""
AGAIN_S = 3.0
"""A second signal later than this ends the launcher; an earlier one belongs to the same preemption."""
_POLL_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36

Process = subprocess.Popen[bytes]


class Launcher:
    """The launcher of one node, which starts new processes of the command in each generation."""

    def __init__(self, command: Sequence[str], *, ranks: int, alone_s: float, start_s: float) -> None:
        self.command, self.ranks, self.alone_s, self.start_s = command, ranks, alone_s, start_s
        self.link = CoordinatorLink(os.environ)
        self.address = own_address(os.environ)
        self.is_replica = self.link.hello["role"] == "replica"
        self.noticed_at: float | None = None
        """When a replica got its first signal."""
        self.processes: list[Process] = []

    def run(self) -> int:
        """Run all generations; return the exit status, 0 if the training is done or the node must leave."""
        for number in (signal.SIGTERM, signal.SIGINT, *((signal.SIGUSR1,) if self.is_replica else ())):
            signal.signal(number, self.on_signal)
        _adopt_orphans()
        try:
            while True:
                layout = self.link.wait(self.address, _free_port(), JOIN_S, self.alone_s)
                if layout is None:
                    return 0
                if (status := self.generation(layout)) is not None:
                    return status
        except TimeoutError as error:
            print(f"steward: run {self.link.run} cannot go on: {error}", file=sys.stderr, flush=True)
            return 1
        finally:
            self.stop()
            self.link.close()

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: report the first one of a replica, whose node Slurm reclaims; else end the launcher."""
        now = time.monotonic()
        if not self.is_replica or not self.link.is_led or now - (self.noticed_at or now) > AGAIN_S:
            raise SystemExit(128 + number)
        self.noticed_at = self.noticed_at or now
        self.link.notice()

    def generation(self, layout: dict[str, Any]) -> int | None:
        """Run the generation's processes; return the exit status, or None if they were stopped for the next one."""
        self.processes = [self.start(layout, local) for local in range(self.ranks)]
        how, status, started_at = "", 0, time.monotonic() + self.start_s
        while not (self.link.restart or self.link.must_leave):
            if not how:
                codes = [process.poll() for process in self.processes]
                status = _status(codes)
                how = "failed" if status else "" if None in codes else "done"
                if not how and time.monotonic() >= started_at:
                    self.link.started(self.ranks)
                    started_at = float("inf")
            if how and (verdict := self.link.ended(how)) not in ("restart", "wait"):
                return 0 if verdict == "done" else status or 1
            time.sleep(_POLL_S)
        self.stop()
        return None

    def start(self, layout: dict[str, Any], local: int) -> Process:
        """Start the process of the command with this local rank."""
        variables = {
            "RANK": int(layout["rank"]) * self.ranks + local,
            "LOCAL_RANK": local,
            "WORLD_SIZE": int(layout["world"]) * self.ranks,
            "LOCAL_WORLD_SIZE": self.ranks,
            "GROUP_RANK": layout["rank"],
            "GROUP_WORLD_SIZE": layout["world"],
            "MASTER_ADDR": layout["address"],
            "MASTER_PORT": layout["port"],
        }
        env = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        # Slurm sends the signals of a preemption to all processes of a job: those of a replica must ignore them.
        return subprocess.Popen(
            [*(IGNORE_SIGNALS if self.is_replica else ()), *self.command], env=env, start_new_session=True
        )

    def stop(self) -> None:
        """Stop the process groups: SIGTERM, then SIGKILL; without a wait on a replica, where they ignore SIGTERM."""
        until = time.monotonic() + (0.0 if self.is_replica else STOP_S)
        _signal(self.processes, signal.SIGTERM)
        while time.monotonic() < until and any(process.poll() is None for process in self.processes):
            time.sleep(_POLL_S)
        _signal(self.processes, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        self.processes = []
        _end_descendants()


def _adopt_orphans() -> None:
    """Have the kernel make orphans among our descendants our children, instead of init's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_descendants() -> None:
    """Kill all our descendants."""
    # A program may start processes in other sessions, which would keep the GPUs from the next generation.
    until = time.monotonic() + STOP_S
    while (pids := _descendants()) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_POLL_S)


def _descendants() -> list[int]:
    """Return the process ids of all our descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found, parents = list[int](), [os.getpid()]
    while parents:
        born = children.get(parents.pop(), [])
        found += born
        parents += born
    return found


def _signal(processes: Sequence[Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            continue


def _status(codes: Sequence[int | None]) -> int:
    """Return the exit status of the first process that failed, as a shell shows it; 0 if none has failed."""
    code = next((code for code in codes if code), 0)
    return 128 - code if code < 0 else code


def _free_port() -> int:
    """Return a free port: the MASTER_PORT of the generation if this node is its first."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m steward.job.launch", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--ranks", type=int, default=1, metavar="N", help="processes of the command on each node")
    parser.add_argument(
        "--alone-s", type=float, default=ALONE_S, help="seconds until the base trains without a coordinator"
    )
    parser.add_argument(
        "--start-s",
        type=float,
        default=float("inf"),
        help="seconds after which a program that does not report to Steward counts as started (default: 5 minutes)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    options = parser.parse_args(argv)
    if options.ranks < 1 or not options.command:
        parser.error("name a command, and at least one process of it")
    if name := missing(os.environ):
        parser.error(f"{name} is not in the environment: submit with `sbatch --elastic=SIZES` where Steward runs")
    return Launcher(options.command, ranks=options.ranks, alone_s=options.alone_s, start_s=options.start_s).run()


if __name__ == "__main__":
    sys.exit(main())
