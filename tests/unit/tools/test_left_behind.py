"""What a run left behind is found, and ended."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.fakes.until import until

TOOL = Path(__file__).parents[3] / "tools" / "left_behind.py"
BESIDE = "env -i sleep 600 &"
"""As a test bed's daemons run: in an environment of their own."""


@pytest.mark.parametrize("beside", ["", BESIDE])
def test_a_process_of_the_run_and_what_it_has_started_are_named_and_ended(beside: str) -> None:
    mark, sleeps = str(uuid4()), 2 if beside else 1
    started = subprocess.Popen(
        ["sh", "-c", f"{beside} sleep 600; exit 1"], env={"STEWARD_RUN": mark, "PATH": "/bin"}, start_new_session=True
    )
    try:
        until("all of it runs", lambda: asleep(started.pid) == sleeps)
        done = left_behind(mark)
        assert done.returncode == 1
        assert done.stdout.count(" sleep 600\n") == sleeps
        assert started.wait() != 0
        assert asleep(started.pid) == 0
        assert left_behind(mark).stdout == "no process left behind\n"
    finally:
        started.kill()


def left_behind(mark: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, TOOL, mark], capture_output=True, text=True, check=False)


def asleep(session: int) -> int:
    """How many processes of the session sleep."""
    return sum(is_asleep(int(folder.name), session) for folder in Path("/proc").glob("[0-9]*"))


def is_asleep(pid: int, session: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00600\x00" and os.getsid(pid) == session
    except OSError:
        return False
