"""The launcher for programs that torchrun does not start: nothing of a generation outlives it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steward.testbed.local_setup import free_ports
from steward.testbed.wait import wait_until

OWN_SESSION = "setsid sleep 600 & echo $! >{path}.new; mv {path}.new {path}; "


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("then", ["wait", "exec true"], ids=["its parent lives", "its parent is gone"])
def test_processes_in_sessions_of_their_own_end_with_the_launcher(tmp_path: Path, then: str) -> None:
    """As the processes of ft_launcher and torchrun are, which are ended by whoever started them, if he lives."""
    pid_file = tmp_path / "pid"
    place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_TOKEN": "word", "STEWARD_ELASTIC_ROLE": "base"}
    place |= {"STEWARD_ELASTIC_ADDRESS": f"127.0.0.1:{free_ports(1)[0]}", "SLURM_NODEID": "0", "SLURM_NNODES": "1"}
    argv = [sys.executable, "-m", "steward.job.launch", "--alone-s=0.1", "--ranks=2", "sh", "-c"]
    command = f'if [ "$RANK" = 0 ]; then {OWN_SESSION.format(path=pid_file)}{then}; else exec sleep 600; fi'
    with subprocess.Popen([*argv, command], env=os.environ | place) as launcher:
        wait_until("its process runs", pid_file.exists, 30)
        pid = int(pid_file.read_text())
        assert is_alive(pid)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(60) == 128 + signal.SIGTERM
    wait_until("nothing of it is left", lambda: not is_alive(pid), 10)
