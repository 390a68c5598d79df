"""A run of two nodes, then of four, three and two: what it learns is what a run of a fixed size learns."""

import os
import subprocess
import sys

import pytest

from steward_bed.faults import FaultKind
from steward_bed.local_setup import free_ports
from tests.e2e.elastic_processes import losses, samples_at_a_fixed_size, samples_by_step, told
from tests.e2e.elastic_runs import KINDS, ElasticStory, a_run
from tests.e2e.story import Story

FEW = "--exclude=n5,n6"
GRACE_S = 20
PATIENCE_S = 90.0
"""Processes with PyTorch take up to ten seconds to start on a machine with two cores."""
WORDS = f"grace={GRACE_S},settle=3,faulty=1,snooze=1,backoff=1"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["plain", pytest.param("fsdp", marks=pytest.mark.long)])
def test_a_training_goes_from_two_nodes_to_four_to_three_to_two_and_learns_the_same(story: Story, kind: str) -> None:
    """`fsdp`: of PyTorch under torchrun, with checkpoints of torch.distributed.checkpoint."""
    run = a_run(story, "-N2", FEW, sizes="4", words=WORDS, kind=kind)
    run.trains_at(2, deadline_s=PATIENCE_S)
    run.trains_at(4, after=1, deadline_s=PATIENCE_S)
    run.goes_on(10)
    grown = len(run.sizes)

    urgent = story.submit(story.script("urgent.sh", "sleep 600"), "-N1", "--exclusive", "--nice=-1000", FEW)
    run.trains_at(3, after=grown, deadline_s=PATIENCE_S)
    story.wait_state(urgent, "RUNNING", 30.0)
    assert story.waited_s(urgent) <= GRACE_S + 5

    story.bed.run(["steward", "elastic", "pause", str(run.job)])
    run.goes_on(10)
    _, node = run.replica()
    story.hurt(FaultKind.KILL_NODE, node)
    run.trains_at(2, after=grown + 1, deadline_s=PATIENCE_S)
    run.goes_on(10)
    assert run.sizes[-3:] == [4, 3, 2]
    assert story.job(run.job).restarts == 0
    story.bed.run(["scancel", str(run.job)])
    story.wait_end(run.job, 60.0)
    no_step_is_lost_but_by_the_fault(run)
    assert {line.get("restarts") for line in run.lines("begun")} == {None if kind == "plain" else "0"}, "of torchrun"
    it_is_as_at_a_fixed_size(run, kind)


def test_it_does_not_ask_for_idle_nodes_that_its_job_could_not_use(story: Story) -> None:
    """n3 and n4 have its feature, all others are idle; then n5 has it, too."""
    for node in ("n3", "n4"):
        add_feature(story, node)
    run = a_run(story, "-N1", "-C", "big", sizes="4", words=WORDS)
    run.trains_at(2, deadline_s=PATIENCE_S)
    story.wait("it is said what idle nodes lack", lambda: story.events("elastic.unfit"), 30.0)
    assert "too few nodes with its features" in story.events("elastic.unfit")[0]["text"]
    assert len(run.replicas()) == 1
    add_feature(story, "n5")
    run.trains_at(3, after=1, deadline_s=PATIENCE_S)


def add_feature(story: Story, node: str) -> None:
    has = story.node_field(node, "AvailableFeatures")
    words = f"{has},big" if has not in ("", "(null)") else "big"
    lists = (f"availablefeatures={words}", f"activefeatures={words}")
    story.bed.run(["scontrol", "update", f"nodename={node}", *lists])


def no_step_is_lost_but_by_the_fault(run: ElasticStory) -> None:
    begun, lasts = run.lines("begun"), dict[int, int]()
    for line in run.lines("step"):
        lasts[line["generation"]] = max(line["step"], lasts.get(line["generation"], 0))
    assert [line["step"] for line in begun[1:-1]] == [lasts[line["generation"]] for line in begun[:-2]]


def it_is_as_at_a_fixed_size(run: ElasticStory, kind: str) -> None:
    """Samples in the same order, each once; losses within what another order of sums makes."""
    lines, steps = told(run.folder), run.step - 1
    taken = samples_by_step(lines)
    order = [index for step in range(1, steps + 1) for index in taken[step]]
    assert order == samples_at_a_fixed_size(steps)

    fixed, training = run.story.dir / "fixed", KINDS[kind]
    argv = [sys.executable, str(training.example / "train.py"), str(fixed), f"--steps={steps}", *training.options]
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_ports(1)[0])}
    subprocess.run(argv, check=True, timeout=120, env=os.environ | ({} if kind == "plain" else place))
    mine = losses(lines)
    assert {step: mine[step] for step in range(1, steps + 1)} == pytest.approx(losses(told(fixed)), rel=1e-6)
