"""torchrun trains on, at another number of nodes, with stock PyTorch: real processes over gloo, without Slurm."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.job.elastic_sampler import sample_at
from tests.e2e.elastic_processes import EXAMPLE, ElasticRun, losses, samples_by_step, told

STEPS = 150
BATCH = 48


@pytest.fixture
def runs(tmp_path: Path) -> "Iterator[list[ElasticRun]]":
    if importlib.util.find_spec("torch") is None:
        pytest.fail("torch is not installed: tools/setup torch")
    begun: list[ElasticRun] = []
    yield begun
    for run in begun:
        run.end()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["ddp", pytest.param("fsdp", marks=pytest.mark.long)])
def test_a_training_goes_from_two_nodes_to_four_to_three_to_two_and_nothing_of_it_changes(
    runs: list[ElasticRun], tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    options = ["--fsdp"] if kind == "fsdp" else []
    script = [str(EXAMPLE), str(out), "--steps", str(STEPS), "--step-s", "0.1", *options]
    run = ElasticRun(tmp_path, script)
    runs.append(run)
    for node, role in (("n1", "base"), ("n2", "base"), ("n3", "replica"), ("n4", "replica")):
        run.agent(node, role)

    run.wait_running("n1", "n2")
    run.wait("two more came", lambda: len(run.word()["joined"]) == 4)
    run.resize("n1", "n2", "n3", "n4")
    run.wait_running("n1", "n2", "n3", "n4")
    run.notice("n4")
    run.wait_running("n1", "n2", "n3")
    assert run.agents["n4"].wait(60) == 0, "a node that is given back ends well"
    run.wait("it made steps", lambda: max(losses(told(out))) >= run.word()["saved_step"] + 3)
    run.kill_node("n3")
    run.wait_running("n1", "n2")
    run.wait("it is done", lambda: told(out)[-1]["what"] == "done")

    assert [run.agents[node].wait(120) for node in ("n1", "n2")] == [0, 0]
    lines = told(out)
    begun = [line for line in lines if line["what"] == "begun"]
    assert [(line["world"], line["restarts"]) for line in begun] == [(2, "0"), (4, "0"), (3, "0"), (2, "0")]
    asked = [line["step"] for line in begun[1:3]]
    assert asked == [last_step_of(lines, generation) for generation in (1, 2)], "no step is lost that was asked for"
    taken = samples_by_step(lines)
    assert sorted(taken) == list(range(1, STEPS + 1))
    assert [index for step in sorted(taken) for index in taken[step]] == [
        sample_at(number, 4096, 7) for number in range(STEPS * BATCH)
    ]
    assert losses(lines) == pytest.approx(fixed_size(runs, tmp_path, options), rel=1e-6)


def last_step_of(lines: "list[dict[str, int]]", generation: int) -> int:
    return max(line["step"] for line in lines if line.get("rank") == 0 and line["generation"] == generation)


def fixed_size(runs: list[ElasticRun], folder: Path, options: list[str]) -> dict[int, float]:
    """The same training on two nodes from its beginning to its end, with torchrun's own rendezvous."""
    out = folder / "fixed"
    script = [str(EXAMPLE), str(out), "--steps", str(STEPS), *options]
    argv = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *script]
    done = runs[0].start(argv, "fixed").wait(240)
    assert done == 0, runs[0].logs()
    return losses(told(out))


@pytest.mark.timeout(600)
def test_hyperpods_pattern_saves_and_returns_and_the_run_goes_on_at_the_new_size(
    runs: list[ElasticRun], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    run = ElasticRun(tmp_path, [str(EXAMPLE.parents[2] / "tests" / "e2e" / "hyperpod_pattern.py"), str(out), "400"])
    runs.append(run)
    for node, role in (("n1", "base"), ("n2", "base"), ("n3", "replica")):
        run.agent(node, role)

    run.wait("all came and it trains", lambda: len(run.word()["joined"]) == 3 and bool(told(out)))
    run.resize("n1", "n2", "n3")
    run.wait("it is done", lambda: run.word()["state"] == "ended")

    assert [run.agents[node].wait(120) for node in ("n1", "n2", "n3")] == [0, 0, 0]
    begun = told(out)
    assert [line["world"] for line in begun] == [2, 3]
    assert 0 < begun[1]["step"] < 400
    assert (out / "step").read_text() == "400"


@pytest.mark.timeout(600)
def test_without_a_coordinator_the_bases_nodes_train_by_themselves(runs: list[ElasticRun], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = ElasticRun(tmp_path, [str(EXAMPLE), str(out), "--steps", "5"])
    runs.append(run)
    run.coordinator.terminate()
    run.coordinator.wait()

    run.agent("n1", "base")
    run.agent("n2", "base")

    assert [run.agents[node].wait(200) for node in ("n1", "n2")] == [0, 0], run.logs()
    assert [(line["what"], line["world"]) for line in told(out) if line["what"] != "step"] == [
        ("begun", 2),
        ("done", 2),
    ]
