"""The demo and the examples do what the README says of them."""

import importlib.util
import io
import json
import subprocess
import sysconfig
import venv
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
    assert "Last reported step" not in story.explain(str(undisturbed))
    job = torch_training(story, "disturbed", "--auto-resume=1", "--nodes=3", "--no-kill", step_s=0.05)
    # A step that was told after a checkpoint says that the checkpoint was whole, and kept, on every node.
    story.wait("it made a step after its second checkpoint", lambda: step(story, "disturbed") >= 25, 90)
    wait_known_step(story, job)
    victim = other_than(story.job(job).batch_host)

    story.hurt(FaultKind.KILL_NODE, victim)

    assert story.wait_end(job, 120).state == "COMPLETED"
    begun = [line for line in progress(story, "disturbed") if line["what"] == "begun"]
    assert [line["attempt"] for line in begun] == ["1", "2"]
    assert begun[1]["step"] >= 20
    assert weights(story, "disturbed") == weights(story, "undisturbed")


@pytest.mark.timeout(120)
def test_the_head_knows_the_step_of_a_training_whose_python_has_no_steward(story: Story) -> None:
    skip_without_local_python(story)
    example, python = EXAMPLES / "numpy_ddp", users_python(story)
    environment = f"--export=ALL,PYTHON={python},TRAIN_DIR={example}"
    training = (str(example / "train.sbatch"), str(story.dir / "digits"), "--steps=2000", "--step-s=0.05")
    output = f"--output={story.dir}/out"
    asked = ["sbatch", "--parsable", output, environment, "--auto-resume=1", "--nodes=4", *training]
    story.jobs.append(job := int(story.bed.run(asked).text.strip()))

    wait_known_step(story, job)


def wait_known_step(story: Story, job: int) -> None:
    story.wait("the head knows its step", lambda: "Last reported step" in story.explain(str(job)), 60)


def users_python(story: Story) -> Path:
    """A Python with the packages that the examples need and without Steward, as users have it."""
    place = story.dir / "python"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    # A line of a .pth file: the .pth files there, which make this checkout's `steward` importable, are not read.
    (place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages" / "packages.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )
    asked = "import importlib.util as u; print([u.find_spec(name) is None for name in ('steward', 'numpy')])"
    found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stdout == "[True, False]\n"
    return python


def skip_without_local_python(story: Story) -> None:
    if story.bed.spec.backend is not Backend.LOCAL:
        pytest.skip("the examples run with this machine's Python packages, which the containers do not have")


def torch_training(story: Story, name: str, *options: str, step_s: float, nodes: int = 2) -> int:
    """Submit the example as it is, to train on `nodes` nodes; its environment says where Python and its files are."""
    example = EXAMPLES / "pytorch_ddp"
    environment = f"--export=ALL,PYTHON={users_python(story)},TRAIN_DIR={example},NODES={nodes}"
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
