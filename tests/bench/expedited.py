"""Slurm's own fast way, `sbatch --requeue=expedite` (25.11 and newer), for the same fault on the same Slurm as ours.

Slurm requeues such a job when a node's epilog fails. Here an epilog knows of a bad node at once, which is the best case
for Slurm: a real one has to find the fault, within the time that it takes.
"""

import shlex

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from steward_bed.wait import wait_until
from tests.bench.scenarios import Measured, Scenario, note, other_node, script_again
from tests.bench.summary import FAILED_BOTH, FAILED_OURS, FAILED_PLAIN
from tests.e2e.story import XID_79, Story

EXPEDITE = "--requeue=expedite"
_BACK_S = 60.0
_CONFIGURED_S = 20.0


def enable(bed: Bed) -> None:
    """Switch it on in a docker bed (its machines share one slurm.conf), with an epilog that fails on a bad node."""
    epilog = bed.shared / "epilog"
    epilog.write_text(f'#!/bin/sh\n[ ! -e {shlex.quote(str(bed.shared))}/"bad-$SLURMD_NODENAME" ]\n')
    epilog.chmod(0o755)
    with (bed.spec.dir / "etc" / "slurm.conf").open("a") as conf:
        conf.write(f"SlurmctldParameters=enable_expedited_requeue\nEpilog={epilog}\n")
    bed.run(["scontrol", "reconfigure"])
    wait_until("Slurm has its new settings", lambda: str(epilog) in _settings(bed), _CONFIGURED_S)


def _settings(bed: Bed) -> str:
    return bed.run(["scontrol", "show", "config"]).text


def failed_under_steward(story: Story) -> Measured:
    """A GPU falls off the bus and the script fails: from its end to its next start."""
    return _fail(story, "--auto-resume=1", xid=True)


def failed_under_both(story: Story) -> Measured:
    """The same for a job that asked for both."""
    return _fail(story, "--auto-resume=1", EXPEDITE, xid=True, epilog=True)


def failed_under_slurm(story: Story) -> Measured:
    """The same for Slurm alone, which learns of it from the epilog."""
    return _fail(story, EXPEDITE, epilog=True)


def _fail(story: Story, *options: str, xid: bool = False, epilog: bool = False) -> Measured:
    for old in story.bed.shared.glob("bad-*"):
        old.unlink()
    go = shlex.quote(str(story.dir / "fail"))
    work = f'[ "${{SLURM_RESTART_COUNT:-0}}" = 0 ] || exec sleep 3600\nuntil [ -e {go} ]; do sleep 0.02; done\n'
    script = story.script("train.sh", f"{note(story)}{work}date +%s.%N >{shlex.quote(str(story.dir))}/failed\nexit 7\n")
    job = story.submit(script, *options, "-N4", "--ntasks-per-node=1", "--gres=gpu:8")
    story.wait("the script runs", lambda: story.lines("scripts"))
    victim = other_node(story, job)
    if epilog:
        (story.bed.shared / f"bad-{victim}").touch()
    if xid:
        story.hurt(FaultKind.KERNEL_LOG, victim, XID_79)
    (story.dir / "fail").touch()
    again = script_again(story, _BACK_S)
    return Measured(seconds=again - float(story.lines("failed")[0]))


UNDER_STEWARD = (
    Scenario(name=FAILED_OURS, goal_s=None, measure=failed_under_steward),
    Scenario(name=FAILED_BOTH, goal_s=None, measure=failed_under_both),
)
UNDER_SLURM = (Scenario(name=FAILED_PLAIN, goal_s=None, measure=failed_under_slurm),)
