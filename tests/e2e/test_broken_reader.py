"""A job comes back whatever is wrong with steward-slurm: Slurm's commands are asked then, and the doctor says why."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import steward
from steward_bed.bed import Bed
from steward_bed.faults import FaultKind, fault
from tests.e2e.story import Story

BACK_S = 15.0
REAL = Path(steward.__file__).parents[2] / "reader/build/steward-slurm"
BROKEN = {
    "missing": ("", "is not built"),
    "hanging": ("exec sleep 1000", "no whole answer"),
    "crashing": ("read line; kill -SEGV $$", "it ended"),
    "of another Steward": ("while read kind more; do echo $kind 1.1 0 0 name,colour; done", "other fields"),
    "with another slurm.conf": (f"SLURM_CONF=/nowhere/slurm.conf exec {REAL}", "failed"),
}
"""What the program does instead, and a word of the doctor's."""


@pytest.fixture(scope="module")
def place(bed: Bed) -> Iterator[Path]:
    """The path of the program that the head of this bed starts, which no other head has."""
    if not REAL.exists():
        pytest.skip("steward-slurm is not built (make shim)")
    # Python finds the head's package in the directory where the head runs, and the program beside the package.
    package, path = bed.spec.dir / "controller/steward", bed.spec.dir / "reader/build/steward-slurm"
    path.parent.mkdir(parents=True)
    package.symlink_to(Path(steward.__file__).parent)
    yield path
    package.unlink()
    shutil.rmtree(path.parents[1])
    begin_again(bed)


def begin_again(bed: Bed) -> None:

    for kind in (FaultKind.KILL_HEAD, FaultKind.START_HEAD):
        bed.inject(fault(kind))


@pytest.mark.parametrize("how", BROKEN)
def test_a_job_comes_back_with_a_reader_that_is(how: str, place: Path, story: Story) -> None:
    instead, word = BROKEN[how]
    place.unlink(missing_ok=True)
    if instead:
        place.write_text(f"#!/bin/sh\n{instead}\n")
        place.chmod(0o755)
    begin_again(story.bed)

    def is_told() -> bool:
        told = story.bed.run(["steward", "doctor"], check=False).text
        return "steward-slurm" in told and word in told

    story.wait("the doctor says what is wrong with it", is_told, BACK_S)
    script = story.script("train.sh", "echo on $SLURM_JOB_NODELIST >>ran\nsleep 600\n")
    job = story.submit(script, "--auto-resume=1", "-N1", "--exclusive")
    story.wait("it runs", lambda: len(story.lines("ran")) == 1)
    victim = story.job(job).batch_host
    story.hurt(FaultKind.KILL_NODE, victim)
    # where all is slow, its own node has a new machine by then
    story.wait("it runs again", lambda: len(story.lines("ran")) == 2, BACK_S)
    assert story.job(job).restarts == 1
