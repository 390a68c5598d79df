"""Other programs than our examples, in an elastic job: HyperPod's pattern; programs that ask Steward nothing, which a
launcher of ours runs again at each size from the checkpoint that they kept themselves; and what starts its processes
without one, and stays at its size."""

import importlib.util
import sys
from pathlib import Path

import pytest

from steward_bed.faults import FaultKind
from tests.e2e import asks_nothing
from tests.e2e.elastic_runs import LIVE, ElasticStory, a_run, python_of
from tests.e2e.on_node import has_own_machines
from tests.e2e.story import Story

pytestmark = pytest.mark.timeout(400)
PROGRAM = Path(asks_nothing.__file__)
FEW = "--exclude=n4,n5,n6"
GRACE_S = 2
OPTIONS = f"--elastic=3,grace={GRACE_S},settle=0,faulty=1,snooze=1,backoff=1"
STEP = """
export OMP_NUM_THREADS=1
trap : TERM
setsid --wait srun --no-kill --ntasks-per-node=1 --kill-on-bad-exit=0 {command}
"""
BARE = "srun --ntasks-per-node=1 {python} {program} {folder}\n"
FT_LAUNCHER = """{python} -m steward.job.launch --start-s=40 sh -c 'exec {ft_launcher} --nnodes=$GROUP_WORLD_SIZE \\
    --node-rank=$GROUP_RANK --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT --nproc-per-node=1 \\
    {program} {folder} meet'"""


@pytest.mark.long
def test_hyperpods_pattern_grows_shrinks_and_ends_well(story: Story) -> None:
    """Its processes save, return and end with status 0 at each change; nothing else of it ever saves."""
    steps = 800
    words = "grace=15,settle=0,faulty=1,snooze=1,backoff=1"
    run = a_run(story, "-N2", FEW, words=words, kind="hyperpod", steps=steps)
    run.trains_at(2, deadline_s=90.0)
    run.trains_at(3, after=1, deadline_s=90.0)
    other = story.submit(story.script("other.sh", "sleep 5"), "-N1", "--exclusive", FEW)
    story.wait_end(other, 60.0)
    assert story.job(other).state == "COMPLETED"
    run.trains_at(2, after=2)

    story.wait_end(run.job, 180.0)
    assert (story.job(run.job).state, story.job(run.job).restarts) == ("COMPLETED", 0)
    assert (run.folder / "step").read_text() == str(steps)
    assert run.sizes[:3] == [2, 3, 2]
    assert run.lost_steps() == 0, "each began from what the one before it saved"
    assert run.step == steps


def a_job(story: Story, script: str, **words: object) -> ElasticStory:
    """A job of two nodes that may grow into a third."""
    folder, program = story.dir / "run", story.dir / PROGRAM.name
    folder.mkdir()
    program.write_text(PROGRAM.read_text())
    text = script.format(python=python_of(story.bed), program=program, folder=folder, **words)
    return ElasticStory(story=story, folder=folder, job=story.submit(story.script("job.sh", text), "-N2", FEW, OPTIONS))


def it_grows_and_shrinks_from_its_own_checkpoints(run: ElasticStory, patience_s: float) -> None:
    run.trains_at(2, deadline_s=patience_s)
    grown = run.trains_at(3, after=1, deadline_s=patience_s)
    run.goes_on(2 * asks_nothing.KEEP_EVERY)
    replica, _ = run.replica()
    run.story.bed.run(["scancel", str(replica)])
    run.story.wait("the node is given back", lambda: not run.replicas(LIVE), GRACE_S + 25.0)
    smaller = run.trains_at(2, after=2, deadline_s=patience_s)
    assert [begun["step"] % asks_nothing.KEEP_EVERY for begun in (grown, smaller)] == [0, 0]
    assert smaller["step"] >= grown["step"] + asks_nothing.KEEP_EVERY
    assert run.lost_steps() <= 2 * asks_nothing.KEEP_EVERY * len(run.sizes)
    assert run.story.job(run.job).restarts == 0


def test_a_python_program_that_asks_nothing_is_run_again_at_each_size_from_its_checkpoint(story: Story) -> None:
    run = a_job(story, STEP.format(command="{python} -m steward.job.launch --start-s=2 {python} {program} {folder}"))
    it_grows_and_shrinks_from_its_own_checkpoints(run, 60.0)


def test_a_bare_srun_stays_at_its_size_without_replicas_and_is_resumed_when_a_node_dies(story: Story) -> None:
    """Its replicas would run the same script beside it, on the same files."""
    run = a_job(story, BARE)
    story.wait("it trains", lambda: run.step > asks_nothing.KEEP_EVERY, 60.0)
    run.goes_on(5 * asks_nothing.KEEP_EVERY)
    assert not run.replicas(LIVE)
    assert not run.told_of("elastic.asks")
    assert "It stays at their number where its processes are not started by torchrun" in story.explain(str(run.job))

    made = len(run.sizes)
    nodes = story.bed.run(["scontrol", "show", "hostnames", story.job(run.job).fields["NodeList"]]).text.split()
    story.hurt(FaultKind.KILL_NODE, nodes[-1])
    story.wait("it is run again", lambda: len(run.sizes) > made, 120.0)
    run.goes_on()
    assert story.job(run.job).restarts == 1


@pytest.mark.long
def test_nvrxs_launcher_is_started_once_a_node_and_again_at_each_size(story: Story) -> None:
    """As docs/elastic.md writes it, with real collectives."""
    lacks = [name for name in ("torch", "nvidia_resiliency_ext") if importlib.util.find_spec(name) is None]
    if lacks or has_own_machines(story.bed):
        pytest.skip(f"{', '.join(lacks) or 'torch'} is not there: tools/setup torch (the docker test bed has none)")
    run = a_job(story, STEP.format(command=FT_LAUNCHER), ft_launcher=Path(sys.executable).with_name("ft_launcher"))
    it_grows_and_shrinks_from_its_own_checkpoints(run, 120.0)
