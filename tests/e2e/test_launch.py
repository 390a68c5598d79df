"""A job counts from its allocation: its node dies in the Prolog, or the Prolog fails there, before its script began."""

from collections.abc import Iterator

import pytest

from steward.testbed.faults import FaultKind
from tests.e2e.changed_conf import changed_conf
from tests.e2e.story import Story

PROLOG = """[ -e {dir}/slow ] && sleep 8
mv {dir}/armed {dir}/taken 2>/dev/null && echo $SLURMD_NODENAME >{dir}/bad
[ "$SLURMD_NODENAME" != "$(cat {dir}/bad 2>/dev/null)" ]
"""
"""While it is armed, the node of the next job is bad from then on."""


@pytest.fixture
def prolog(story: Story) -> Iterator[Story]:
    """Slurm runs a Prolog: slow while `slow` is there, and failing on the node that `bad` names."""
    script = story.script("prolog.sh", PROLOG.format(dir=story.dir))
    with changed_conf(story.bed, lambda conf: f"{conf}\nProlog={script}\nPrologFlags=Alloc\n"):
        yield story


def submit(story: Story, *options: str) -> int:
    return story.submit(story.script("sleeps.sh", "sleep 5\n"), "--exclusive", "-N1", *options)


def test_a_node_whose_prolog_fails_hurts_one_job_which_goes_on_elsewhere_and_serves_again_when_it_passes(
    prolog: Story,
) -> None:
    (prolog.dir / "armed").touch()
    hurt = submit(prolog, "--auto-resume=1")
    prolog.wait("it runs elsewhere", lambda: prolog.job(hurt).restarts and prolog.job(hurt).state == "RUNNING", 30.0)
    (node,) = prolog.lines("bad")
    assert prolog.job(hurt).fields["NodeList"] != node
    assert f"{node}: Slurm says 'Prolog error'" in prolog.explain(f"{hurt}")
    for job in (submit(prolog), submit(prolog), hurt):
        ended = prolog.wait_end(job, 60.0)
        assert (ended.state, ended.fields["NodeList"] != node) == ("COMPLETED", True)
    assert prolog.job(hurt).restarts == 1
    (prolog.dir / "bad").unlink()
    prolog.bed.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False)
    prolog.wait("it serves again", lambda: prolog.node_state(node) == "IDLE", 60.0)


def test_a_job_whose_node_dies_in_the_prolog_is_back_within_seconds_and_counted(prolog: Story) -> None:
    (prolog.dir / "slow").touch()
    job = submit(prolog, "--auto-resume=1")
    prolog.wait_state(job, "RUNNING")
    prolog.hurt(FaultKind.KILL_NODE, prolog.job(job).fields["NodeList"])
    prolog.wait("it has nodes again", lambda: prolog.job(job).restarts == 1 and prolog.job(job).state == "RUNNING")
    assert "1 of 5 resumes are used" in prolog.explain(f"{job}")
    assert prolog.wait_end(job, 60.0).state == "COMPLETED"
