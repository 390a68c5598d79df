"""A training without torch, under Steward's own launcher: it changes its size as one under torchrun does."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.elastic_processes import LAUNCH, PLAIN, ElasticRun, samples_at_a_fixed_size, samples_by_step, told

STEPS = 400


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[list[ElasticRun]]:
    begun: list[ElasticRun] = []
    yield begun
    for run in begun:
        run.end()


def a_run(folder: Path, runs: list[ElasticRun], *options: str, launcher: tuple[str, ...] = LAUNCH) -> ElasticRun:
    run = ElasticRun(folder, [str(PLAIN), str(folder / "out"), *options], launcher=launcher)
    runs.append(run)
    return run


def test_it_goes_from_two_nodes_to_four_to_three_to_two_and_its_result_is_the_same_to_the_bit(
    runs: list[ElasticRun], tmp_path: Path
) -> None:
    run = a_run(tmp_path, runs, f"--steps={STEPS}", "--sample-s=0.002")
    for node, role in (("n1", "base"), ("n2", "base"), ("n3", "replica"), ("n4", "replica")):
        run.agent(node, role)
    run.wait("two more came", lambda: run.word().get("state") == "running" and len(run.word()["joined"]) == 4)
    run.resize("n1", "n2", "n3", "n4")
    run.wait_running("n1", "n2", "n3", "n4")
    run.notice("n4")
    run.wait_running("n1", "n2", "n3")
    assert run.agents["n4"].wait(60) == 0, "a node that is given back ends well"
    run.kill_node("n3")
    run.wait_running("n1", "n2")
    run.wait("it is done", lambda: told(tmp_path / "out")[-1]["what"] == "done")

    assert run.ends(60) == [0, 0], run.logs()
    lines = told(tmp_path / "out")
    begun = [line for line in lines if line["what"] == "begun"]
    assert [line["world"] for line in begun] == [2, 4, 3, 2]
    last = [max(line["step"] for line in lines if line["generation"] == generation) for generation in (1, 2)]
    assert [line["step"] for line in begun[1:3]] == last, "no step is lost that was asked for"
    taken = samples_by_step(lines)
    order = [index for step in sorted(taken) for index in taken[step]]
    assert order == samples_at_a_fixed_size(STEPS)
    assert lines[-1]["weights"] == alone(tmp_path)


def alone(folder: Path) -> str:
    """The digest of the same training in one process, without a launcher."""
    argv = [sys.executable, str(PLAIN), str(folder / "fixed"), f"--steps={STEPS}"]
    subprocess.run(argv, check=True, timeout=60)
    return str(told(folder / "fixed")[-1]["weights"])


def test_a_program_that_cannot_save_begins_again_at_the_new_size_and_the_run_lives(
    runs: list[ElasticRun], tmp_path: Path
) -> None:
    """Any program: torchrun's variables say how many it is; it is stopped when the grace is over."""
    says = f'echo "$RANK $WORLD_SIZE $GROUP_WORLD_SIZE $LOCAL_RANK" >>{tmp_path}/began; exec sleep 600'
    run = ElasticRun(
        tmp_path, ["-c", says], grace_s=1, launcher=("steward.job.launch", "--ranks=2", "--start-s=1", "sh")
    )
    runs.append(run)
    for node, role in (("n1", "base"), ("n2", "base"), ("n3", "replica")):
        run.agent(node, role)
    began = tmp_path / "began"
    run.wait("its processes run", lambda: began.exists() and len(began.read_text().splitlines()) == 4)
    assert sorted(began.read_text().splitlines()) == ["0 4 2 0", "1 4 2 1", "2 4 2 0", "3 4 2 1"]
    run.wait_running("n1", "n2")
    began.write_text("")
    run.wait("the third node came", lambda: len(run.word()["joined"]) == 3)
    run.resize("n1", "n2", "n3", grace_s=1)
    run.wait("they begin again", lambda: len(began.read_text().splitlines()) == 6)
    assert {line.split()[1] for line in began.read_text().splitlines()} == {"6"}
    for node in run.agents:
        run.kill_node(node)


def test_the_trainings_own_failure_is_the_status_of_the_launcher(runs: list[ElasticRun], tmp_path: Path) -> None:
    run = ElasticRun(tmp_path, ["-c", "sleep 1; exit 7"], launcher=("steward.job.launch", "sh"))
    runs.append(run)
    for node in ("n1", "n2"):
        run.agent(node, "base")

    assert run.ends(60) == [7, 7], run.logs()
