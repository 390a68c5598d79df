"""The demo and the examples do what the README says of them."""

import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from examples.demo.measure import FaultStory
from examples.demo.story import Script, play
from examples.demo.watch import Screen
from steward_bed.bed import Backend
from steward_bed.faults import FaultKind
from tests.e2e.story import Story

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.timeout(240)
def test_the_demos_job_comes_back_three_times_and_ends_with_the_weights_of_an_undisturbed_run(story: Story) -> None:
    skip_without_local_python(story)
    with Screen(Console(file=io.StringIO())) as screen:
        result = play(story.bed, screen, Script(steps=1000, step_s=0.03, between=15))

    assert [figures.kind for figures in result.faults] == list(FaultStory)
    assert all(0 <= figures.steps_lost <= 60 for figures in result.faults)
    assert all(figures.returned_s is not None for figures in result.faults)
    assert result.weights_identical


@pytest.mark.timeout(240)
def test_pytorch_training_goes_on_from_its_checkpoint_after_its_node_died(story: Story) -> None:
    skip_without_local_python(story)
    if importlib.util.find_spec("torch") is None:
        pytest.fail("torch is not installed: tools/setup torch")
    undisturbed = torch_training(story, "undisturbed", "--nodes=2", step_s=0.0)
    story.wait_end(undisturbed, 120)
    job = torch_training(story, "disturbed", "--auto-resume=1", "--nodes=3", "--no-kill", step_s=0.05)
    # A step that was told after a checkpoint says that the checkpoint was whole, and kept, on every node.
    story.wait("it made a step after its second checkpoint", lambda: step(story, "disturbed") >= 25, 90)
    victim = other_than(story.job(job).batch_host)

    story.hurt(FaultKind.KILL_NODE, victim)

    assert story.wait_end(job, 120).state == "COMPLETED"
    begun = [line for line in progress(story, "disturbed") if line["what"] == "begun"]
    assert [line["attempt"] for line in begun] == ["1", "2"]
    assert begun[1]["step"] >= 20
    assert weights(story, "disturbed") == weights(story, "undisturbed")


def skip_without_local_python(story: Story) -> None:
    if story.bed.spec.backend is not Backend.LOCAL:
        pytest.skip("the examples run with this machine's Python packages, which the containers do not have")


def torch_training(story: Story, name: str, *options: str, step_s: float, nodes: int = 2) -> int:
    """Submit the example as it is, to train on `nodes` nodes; its environment says where Python and its files are."""
    example = EXAMPLES / "pytorch_ddp"
    environment = f"--export=ALL,PYTHON={sys.executable},TRAIN_DIR={example},NODES={nodes}"
    training = (str(example / "train.sbatch"), str(story.dir / name), "--steps", "60", "--step-s", str(step_s))
    output = f"--output={story.dir}/out"
    done = story.bed.run(["sbatch", "--parsable", output, environment, *options, *training])
    story.jobs.append(job := int(done.text.strip()))
    return job


def other_than(batch_host: str) -> str:
    return next(node for node in ("n1", "n2") if node != batch_host)


def progress(story: Story, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in story.lines(f"{name}/progress.jsonl")]


def step(story: Story, name: str) -> int:
    return max((int(line["step"]) for line in progress(story, name) if line["what"] == "step"), default=0)


def weights(story: Story, name: str) -> str:
    return str(progress(story, name)[-1]["weights"])
