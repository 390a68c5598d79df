"""On a machine with a real NVIDIA GPU and PyTorch: it is looked at, tested and trained on. Elsewhere all are skipped.

The nodes of the bed share the machine's GPUs, so every job here has one node.
"""

import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.bed import Bed, Overrides
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.findings import checks_of
from tests.e2e.story import Story
from tests.e2e.test_examples import progress, step, torch_training, weights

DRIVER = Path("/proc/driver/nvidia/gpus")
NODES = ("n1", "n2", "n3")
ILLEGAL_ACCESS = """import torch
import triton
import triton.language as tl

@triton.jit
def wild(data, offset):
    tl.store(data + offset, 1.0)

wild[(1,)](torch.zeros(4, device="cuda"), 1 << 40)
torch.cuda.synchronize()
"""
"""Writes four TiB behind its array: the GPU's MMU refuses, which is Xid 31."""

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not DRIVER.is_dir(), reason=f"this machine has no NVIDIA GPU: none in {DRIVER}"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: tools/setup torch"),
]


@pytest.fixture(scope="module")
def gpu_machine(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Its agents read the machine's own kernel log."""
    settings: Overrides = {"agent": {"kernel_log": "/dev/kmsg"}, "deep": {"budget_s": 60.0}}
    yield from brought_up(request, nodes=len(NODES), steward=True, settings=settings)


@pytest.fixture
def gpu_story(gpu_machine: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(gpu_machine, request) as place:
        yield Story(gpu_machine, place)


def test_every_node_looks_at_the_gpu_and_stays_in_service(gpu_story: Story) -> None:
    story = gpu_story
    story.wait(
        "all have looked at it",
        lambda: {checks_of(story, node).get("gpu", {}).get("outcome") for node in NODES} == {"passed"},
        60.0,
    )
    assert all(story.node_state(node) == "IDLE" for node in NODES)
    assert story.cases() == []


def test_a_deep_check_measures_the_gpu(gpu_story: Story) -> None:
    story = gpu_story
    asked = ["steward", "check", "deep", "n1", "--kind", "InstanceStress", "--wait"]

    assert "Passed" in story.bed.run(asked, timeout_s=120.0).text
    run = story.get("/v1/checks/deep")[0]
    shown = story.bed.run(["steward", "check", "show", run["id"]]).text
    assert all(measure in shown for measure in ("gpu.gemm", "gpu.memory", "gpu.h2d", "gpu.d2h")), shown


def test_training_on_the_gpu_goes_on_on_another_node_with_the_same_weights(gpu_story: Story) -> None:
    story = gpu_story
    undisturbed = torch_training(story, "undisturbed", "--nodes=1", step_s=0.0, nodes=1)
    story.wait_end(undisturbed, 90)
    job = torch_training(story, "disturbed", "--auto-resume=1", "--nodes=1", step_s=0.05, nodes=1)
    story.wait("it made a step after its second checkpoint", lambda: step(story, "disturbed") >= 25, 90)

    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)

    assert story.wait_end(job, 120).state == "COMPLETED"
    begun = [line for line in progress(story, "disturbed") if line["what"] == "begun"]
    assert [line["device"] for line in begun] == ["cuda:0", "cuda:0"]
    assert begun[1]["step"] >= 20
    assert story.job(job).restarts == 1
    assert weights(story, "disturbed") == weights(story, "undisturbed")


def test_a_programs_own_fault_on_the_gpu_is_told_as_its_own_and_drains_nothing(gpu_story: Story) -> None:
    story = gpu_story
    story.script("fault.py", ILLEGAL_ACCESS)
    since = time.time()
    before = {node: story.instance(node) for node in NODES}
    script = story.script("job.sh", f"srun -n1 {sys.executable} {story.dir}/fault.py\n")
    job = story.submit(script, "--auto-resume=1", "-N1")

    seen = story.wait_end(job, 90)
    assert (seen.state, seen.restarts) == ("FAILED", 0)
    assert any("illegal memory access" in line for line in story.lines("out"))
    story.wait("a node tells it", lambda: any("kernel_log.xid31" in checks_of(story, node) for node in NODES), 30.0)
    assert story.cases(since=since) == []
    assert {node: story.instance(node) for node in NODES} == before
    assert all(story.node_state(node) == "IDLE" for node in NODES)
