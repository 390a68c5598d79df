"""The test bed itself: without it no other end-to-end test means anything."""

from pathlib import Path

import pytest

from steward_bed import beds
from steward_bed.bed import Bed, BedError, MachinePower
from steward_bed.beds import reset
from steward_bed.faults import FaultKind, fault
from steward_bed.wait import node_states, wait_until


@pytest.fixture
def fresh(plain_bed: Bed) -> Bed:
    reset(plain_bed)
    return plain_bed


def power(bed: Bed, node: str) -> MachinePower:
    return next(status.power for status in bed.status().nodes if status.name == node)


def ticks(bed: Bed, node: str) -> Path:
    """Submit a job that writes a line ten times a second on this node; its file, once it has lines."""
    path = bed.shared / f"ticks-{node}"
    path.unlink(missing_ok=True)
    loop = f"exec >{path}; while sleep 0.1; do echo tick; done"
    bed.run(["sbatch", f"--nodelist={node}", "--output=/dev/null", "--wrap", f"srun sh -c '{loop}'"])
    wait_until(f"the job on {node} writes", lambda: lines(path) > 0, 20)
    return path


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def grows(path: Path) -> bool:
    """Within a second."""
    before = lines(path)
    try:
        wait_until("the file grows", lambda: lines(path) > before, 1.0)
    except BedError:
        return False
    return True


def test_a_job_runs_on_every_node_with_all_its_gpus(fresh: Bed) -> None:
    ran = fresh.run(["srun", "-N3", "-n3", "--gres=gpu:8", "sh", "-c", "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"])
    assert sorted(ran.text.splitlines()) == [f"n{number} 0,1,2,3,4,5,6,7" for number in (1, 2, 3)]


def test_an_ordinary_users_job_runs_as_that_user(fresh: Bed) -> None:
    assert fresh.run(["srun", "-N1", "id", "-un"], user="nobody").text.strip() == "nobody"


def test_a_killed_node_takes_its_job_processes_with_it_and_can_be_started_again(fresh: Bed) -> None:
    path = ticks(fresh, "n2")
    fresh.inject(fault(FaultKind.KILL_NODE, "n2"))
    assert power(fresh, "n2") is MachinePower.OFF
    assert not grows(path)
    fresh.inject(fault(FaultKind.START_NODE, "n2"))
    assert power(fresh, "n2") is MachinePower.ON


def test_a_frozen_node_stands_still_and_goes_on_when_thawed(fresh: Bed) -> None:
    path = ticks(fresh, "n2")
    fresh.inject(fault(FaultKind.FREEZE_NODE, "n2"))
    assert power(fresh, "n2") is MachinePower.FROZEN
    assert not grows(path)
    fresh.inject(fault(FaultKind.THAW_NODE, "n2"))
    wait_until("it goes on", lambda: grows(path), 20.0)


def test_restore_undoes_every_fault_in_force(fresh: Bed) -> None:
    for what in (fault(FaultKind.KILL_NODE, "n1"), fault(FaultKind.FREEZE_NODE, "n3"), fault(FaultKind.HANG_SCONTROL)):
        fresh.inject(what)
    assert sorted(fresh.status().faults) == ["freeze-node n3", "hang-scontrol", "kill-node n1"]
    fresh.restore()
    assert fresh.status().healthy


def test_reset_gives_idle_nodes_and_an_empty_queue(fresh: Bed) -> None:
    ticks(fresh, "n1")
    fresh.inject(fault(FaultKind.KILL_NODE, "n1"))
    fresh.run(["scontrol", "update", "nodename=n1,n2", "state=drain", "reason=test"])
    reset(fresh)
    assert set(node_states(fresh).values()) == {"idle"}
    assert fresh.run(["squeue", "--noheader"]).text == ""


def test_a_fault_of_an_unknown_node_is_refused_with_the_names_there_are(fresh: Bed) -> None:
    with pytest.raises(BedError, match="no node n9 in this bed; it has n1, n2, n3"):
        fresh.inject(fault(FaultKind.KILL_NODE, "n9"))


def test_a_bed_is_found_again_by_its_directory(fresh: Bed) -> None:
    assert beds.find(fresh.spec.dir).status().dir == fresh.spec.dir
