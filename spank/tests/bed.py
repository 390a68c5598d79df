"""What the tests of the shim share: a folder, an agent, and a Slurm that is not there."""

import os
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from fake_agent import FakeAgent

FAKE_SLURM = os.environ["FAKE_SLURM"]
DEADLINE_S = 20.0


class ShimTest(unittest.TestCase):
    """A test with a private socket path and no trace of the Slurm job it may itself run in."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.socket = str(self.folder / "agent.sock")
        self.hold_s = 10
        self.program = FAKE_SLURM

    def agent(self, answers: str) -> FakeAgent:
        """An agent that answers so until the end of the test."""
        agent = FakeAgent(self.socket, answers)
        self.addCleanup(agent.close)
        return agent

    def lose(self, agent: FakeAgent) -> None:
        """End an agent as a restart does: its socket is gone until the next one is there."""
        agent.close()
        Path(self.socket).unlink()

    def env(self, **variables: str) -> dict[str, str]:
        """The environment of a command inside job 12, unless told otherwise."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "STEWARD", "SPANK"))}
        ours |= {"FAKE_PLUGSTACK": f"socket={self.socket} hold={self.hold_s}", "SLURM_JOB_ID": "12"} | variables
        return {name: value for name, value in ours.items() if value}

    def start(
        self, argv: list[str], stdin: int = subprocess.DEVNULL, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command of the fake Slurm without waiting for it, in a session of its own (no terminal)."""
        process = subprocess.Popen(
            argv,
            executable=self.program,
            env=self.env(**(env or {})),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(self._reap, process)
        self.limit(process.kill)
        return process

    def limit(self, end: Callable[[], None]) -> None:
        """Call end() when the deadline is over before the test: what waits for output then sees its end."""
        timer = threading.Timer(DEADLINE_S, end)
        timer.start()
        self.addCleanup(timer.cancel)

    def run_slurm(self, *argv: str, **env: str) -> tuple[int, str, float]:
        """Exit status, output and seconds of a command of the fake Slurm."""
        begin = time.monotonic()
        process = self.start(list(argv), env=env)
        output, _ = process.communicate(timeout=DEADLINE_S)
        return process.returncode, output, time.monotonic() - begin

    def _reap(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
        if process.stdin:
            process.stdin.close()


def await_condition(condition: Callable[[], object], what: str) -> None:
    """Return as soon as condition() holds; fail after the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not in {DEADLINE_S} s: {what}")
        time.sleep(0.01)
