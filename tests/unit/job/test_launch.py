"""The launcher for programs that torchrun does not start: nothing of a generation outlives it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steward_bed.local_setup import free_ports
from steward_bed.wait import wait_until
from tests.fakes.until import FACT_S

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
        wait_until("its process runs", pid_file.exists, FACT_S)
        pid = int(pid_file.read_text())
        assert is_alive(pid)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(FACT_S) == 128 + signal.SIGTERM
    wait_until("nothing of it is left", lambda: not is_alive(pid), FACT_S)


def base(node: int, nodes: int, *words: str, **more: str) -> "subprocess.Popen[str]":
    """The launcher on a node of a base whose shim got no answer from an agent."""
    cut = {name: value for name, value in os.environ.items() if not name.startswith(("STEWARD_", "SLURM"))}
    place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_ROLE": "base"}
    place |= {"SLURM_NODEID": str(node), "SLURM_NNODES": str(nodes), "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"}
    argv = [sys.executable, "-m", "steward.job.launch", *words]
    return subprocess.Popen(argv, env=cut | place | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_base_that_no_agent_told_of_its_coordinator_trains_on_its_own_nodes() -> None:
    says = 'echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"'
    nodes = [base(node, 2, "sh", "-c", says) for node in (0, 1)]
    said = [node.communicate(timeout=FACT_S) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    places = [out.split(" at ") for out, _ in said]
    assert [rank for rank, _ in places] == ["0 of 2", "1 of 2"]
    assert places[0][1] == places[1][1]
    assert places[0][1].startswith("127.0.0.1:")
    assert "run 7 trains on the nodes of its own job only" in said[0][1]
    assert said[1][1] == "", "one line for the run"


def test_a_base_that_trains_by_itself_ends_as_its_program_does() -> None:
    failing = base(0, 1, "sh", "-c", "exit 3")
    failing.communicate(timeout=FACT_S)
    assert failing.returncode == 3


def test_a_replica_without_its_coordinators_address_is_told_what_is_missing() -> None:
    replica = base(0, 1, "true", STEWARD_ELASTIC_ROLE="replica")
    _, said = replica.communicate(timeout=FACT_S)
    assert replica.returncode == 2
    assert "STEWARD_ELASTIC_ADDRESS is not in the environment" in said
