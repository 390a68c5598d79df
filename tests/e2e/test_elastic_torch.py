"""torchrun trains on, at another number of nodes, with stock PyTorch: real processes over gloo, without Slurm."""

import importlib.util
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.job.elastic_link import port_without_coordinator
from steward_bed.local_setup import free_ports
from tests.e2e.elastic_processes import (
    EXAMPLE,
    ElasticRun,
    Line,
    losses,
    samples_at_a_fixed_size,
    samples_by_step,
    told,
)


@pytest.fixture
def runs(tmp_path: Path) -> "Iterator[list[ElasticRun]]":
    if importlib.util.find_spec("torch") is None:
        pytest.fail("torch is not installed: tools/setup torch")
    begun: list[ElasticRun] = []
    yield begun
    for run in begun:
        run.end()


@pytest.mark.timeout(600)
def test_a_training_grows_and_loses_a_node_and_its_samples_and_losses_are_those_of_one_process(
    runs: list[ElasticRun], tmp_path: Path
) -> None:
    run = a_run(runs, tmp_path, 60)
    run.wait("one more came", lambda: len(run.word()["joined"]) == 3)
    run.resize("n1", "n2", "n3")
    run.wait_running("n1", "n2", "n3")

    lines = goes_on_without_n3(run, tmp_path / "out")

    assert sizes(lines) == [2, 3, 2]
    it_is_as_at_a_fixed_size(runs[0], tmp_path, lines, 60)


def a_run(runs: list[ElasticRun], folder: Path, steps: int) -> ElasticRun:
    """It trains on the base's two nodes; n3 is coming."""
    run = ElasticRun(folder, [str(EXAMPLE), str(folder / "out"), "--steps", str(steps), "--step-s", "0.1"])
    runs.append(run)
    for node, role in (("n1", "base"), ("n2", "base"), ("n3", "replica")):
        run.agent(node, role)
    run.wait_running("n1", "n2")
    return run


def goes_on_without_n3(run: ElasticRun, out: Path) -> list[Line]:
    """The node is killed when it has made some steps; what the training told by its end."""
    run.wait("it made steps", lambda: max(losses(told(out))) >= run.word()["saved_step"] + 3)
    run.kill_node("n3")
    run.wait_running("n1", "n2")
    run.wait("it is done", lambda: told(out)[-1]["what"] == "done")
    assert run.ends(120) == [0, 0]
    return told(out)


def sizes(lines: list[Line]) -> list[int]:
    """Of all generations; torchrun restarted none of them, and what was saved on demand is all that was done."""
    begun = [line for line in lines if line["what"] == "begun"]
    assert {line["restarts"] for line in begun} == {"0"}
    graceful = range(1, len(begun) - 1)
    assert [begun[number]["step"] for number in graceful] == [last_step_of(lines, number) for number in graceful]
    return [int(line["world"]) for line in begun]


def it_is_as_at_a_fixed_size(run: ElasticRun, folder: Path, lines: list[Line], steps: int) -> None:
    """Samples in the same order, each once; losses within what another order of sums makes."""
    taken = samples_by_step(lines)
    assert sorted(taken) == list(range(1, steps + 1))
    order = [index for step in sorted(taken) for index in taken[step]]
    assert order == samples_at_a_fixed_size(steps)
    script = [sys.executable, str(EXAMPLE), str(folder / "fixed"), "--steps", str(steps)]
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1)[0])}
    assert run.start(script, "fixed", **place).wait(240) == 0, run.logs()
    assert losses(lines) == pytest.approx(losses(told(folder / "fixed")), rel=1e-6)


def last_step_of(lines: list[Line], generation: int) -> int:
    return max(int(line["step"]) for line in lines if line.get("rank") == 0 and line["generation"] == generation)


@pytest.mark.timeout(600)
def test_without_a_coordinator_the_bases_nodes_train_by_themselves(runs: list[ElasticRun], tmp_path: Path) -> None:
    """Also where the second node comes later: it calls a coordinator in vain, and not the first one's store."""
    out = tmp_path / "out"
    run = ElasticRun(tmp_path, [str(EXAMPLE), str(out), "--steps", "5"])
    runs.append(run)
    run.coordinator.terminate()
    run.coordinator.wait()

    port = port_without_coordinator("7", int(run.env["STEWARD_ELASTIC_ADDRESS"].rpartition(":")[2]))
    run.agent("n1", "base")
    run.wait("the first node goes alone", lambda: listens(port))
    run.agent("n2", "base")

    assert run.ends(200) == [0, 0], run.logs()
    assert [(line["what"], line["world"]) for line in told(out) if line["what"] != "step"] == [
        ("begun", 2),
        ("done", 2),
    ]


@pytest.mark.timeout(600)
def test_a_base_that_was_told_of_no_coordinator_trains_by_itself(runs: list[ElasticRun], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ElasticRun(tmp_path, [str(EXAMPLE), str(out), "--steps", "5"])
    runs.append(run)
    del run.env["STEWARD_ELASTIC_ADDRESS"], run.env["STEWARD_ELASTIC_TOKEN"]
    run.env["SLURM_LAUNCH_NODE_IPADDR"] = "127.0.0.1"

    for node in ("n1", "n2"):
        run.agent(node, "base")

    assert run.ends(200) == [0, 0], run.logs()
    assert [(line["what"], line["world"]) for line in told(out) if line["what"] != "step"] == [
        ("begun", 2),
        ("done", 2),
    ]


SEES_LATE = """
import os, runpy
from pathlib import Path
if os.environ["RANK"] == "1":
    look = Path.exists
    Path.exists = lambda path, **words: not path.name.startswith("step-") and look(path, **words)
    Path.glob = lambda path, pattern: iter(())
runpy.run_path({path!r}, run_name="__main__")
"""
"""A rank whose node's NFS does not show yet what rank 0 wrote."""


@pytest.mark.timeout(300)
def test_a_rank_that_sees_checkpoints_late_saves_and_loads_with_the_others(
    runs: list[ElasticRun], tmp_path: Path
) -> None:
    run, out = ElasticRun(tmp_path, []), tmp_path / "out"
    runs.append(run)
    for steps in ("2", "4"):  # the last one is kept already when the training ends
        script = [sys.executable, "-c", SEES_LATE.format(path=str(EXAMPLE)), str(out), "--steps", steps]
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1)[0])}
        ranks = [run.start([*script, "--keep-every=2"], rank, RANK=rank, **place) for rank in ("0", "1")]
        try:
            assert [rank.wait(60) for rank in ranks] == [0, 0], run.logs()
        finally:
            for rank in ranks:
                rank.kill()
    assert [line["step"] for line in told(out) if line["what"] in ("begun", "done")] == [0, 2, 2, 4]
    assert sorted(samples_by_step(told(out))) == [1, 2, 3, 4]


def listens(port: int) -> bool:
    with socket.socket() as dialled:
        return dialled.connect_ex(("127.0.0.1", port)) == 0


SAYS = """
import os, time
with open({path!r}, "a") as out:
    print(*(os.environ[name] for name in ("RANK", "WORLD_SIZE", "GROUP_RANK")), file=out)
time.sleep(600)
"""


@pytest.mark.timeout(600)
def test_a_launcher_that_starts_processes_itself_is_started_once_a_node_and_again_at_each_size(
    runs: list[ElasticRun], tmp_path: Path
) -> None:
    """As docs/elastic.md has it: torchrun with its own rendezvous."""
    path = Path(sys.executable).with_name("torchrun")
    began, program = tmp_path / "began", tmp_path / "says.py"
    program.write_text(SAYS.format(path=str(began)))
    command = (
        f"exec {path} --nnodes=$GROUP_WORLD_SIZE --node-rank=$GROUP_RANK "
        f"--rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT --nproc-per-node=1 {program}"
    )
    run = ElasticRun(tmp_path, ["-c", command], grace_s=1, launcher=("steward.job.launch", "sh"))
    runs.append(run)
    for node, role in (("n1", "base"), ("n2", "base"), ("n3", "replica")):
        run.agent(node, role)
    run.wait("both nodes of the base", lambda: ranks(began) == ["0 2 0", "1 2 1"])
    run.wait("the third node came", lambda: len(run.word()["joined"]) == 3)

    began.unlink()
    run.resize("n1", "n2", "n3", grace_s=1)
    run.wait("all three", lambda: ranks(began) == ["0 3 0", "1 3 1", "2 3 2"])
    began.unlink()
    run.notice("n3")
    run.wait("two again", lambda: ranks(began) == ["0 2 0", "1 2 1"])

    assert run.agents["n3"].wait(60) == 0


def ranks(began: Path) -> list[str]:
    return sorted(began.read_text().splitlines()) if began.exists() else []
