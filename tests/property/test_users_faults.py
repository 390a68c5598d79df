"""What one user can bring about on nodes costs no machine, and holds back no repair of another node."""

import os
from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from steward.model.health import Advice, Severity
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from tests.fakes.head import Head
from tests.fakes.sim_slurm import Run
from tests.property.law import OF_USERS
from tests.property.stories import a_head

EXAMPLES = settings(max_examples=int(os.environ.get("HOSTILE_EXAMPLES", "100")))
EVIL, VICTIM = 1666, NodeName("n6")
STANDING = ("disk", "slurm.spool", "os.dstate", "mem.free", "")
"""Checks that then find what he left there, or none."""
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """His job makes Slurm take the node out, and leaves something that lasts, also beyond a reboot if `stays`."""

    after_s: float
    node: NodeName
    reason: str
    left: str
    stays: bool


deeds = st.builds(
    Deed,
    after_s=st.sampled_from([0.3, 8.0, 45.0]),
    node=st.integers(1, 5).map(lambda number: NodeName(f"n{number}")),
    reason=st.sampled_from(OF_USERS),
    left=st.sampled_from(STANDING),
    stays=st.booleans(),
)


def does(head: Head, deed: Deed) -> None:
    """Slurm drains the node, unless his job cannot be there: it is out of service already, or kept for a test."""
    world = head.world
    is_kept = any(deed.node in one.nodes for one in world.reservations().values())
    if is_kept or not world.slurm.nodes[deed.node].is_schedulable:
        return
    job = JobId(next(world.ids))
    his = Job(
        id=job,
        name="evil",
        state=JobState.CANCELLED,
        user_id=EVIL,
        node_count=1,
        nodes=frozenset({deed.node}),
        partition="main",
        submitted=world.now,
        ended=world.now,
    )
    world.slurm.jobs[job], world.slurm.runs[job] = his, Run(works_s=1.0)
    world.slurm.take_out(deed.node, deed.reason, world.now)
    leaves(head, deed)


def leaves(head: Head, deed: Deed) -> None:
    if deed.left:
        head.world.machines.fail_check(deed.node, Severity.INFO, Advice.NONE, head.world.now, deed.left)


def goes_on(head: Head, story: list[Deed], seconds: float) -> None:
    """What stays on a disk is found again after each reboot."""
    lasting = {deed.node: deed for deed in story if deed.left in ("disk", "slurm.spool") and deed.stays}
    while seconds > 0:
        head.run(min(seconds, 15.0))
        seconds -= 15.0
        for deed in lasting.values():
            leaves(head, deed)


def again_and_again(reason: str, left: str, times: int = 4) -> list[Deed]:
    return [Deed(after_s=45.0, node=NodeName("n1"), reason=reason, left=left, stays=False) for _ in range(times)]


@EXAMPLES
@given(st.lists(deeds, min_size=1, max_size=5))
@example(again_and_again("Prolog error", "os.dstate"))
@example(
    [Deed(after_s=0.3, node=NodeName("n1"), reason="SlurmdSpoolDir is full", left="slurm.spool", stays=True)],
)
def test_what_one_user_brings_about_costs_no_machine_and_holds_back_no_repair(story: list[Deed]) -> None:
    head = a_head()
    head.watch = None  # that every story keeps the law is test_stories' matter
    world = head.world
    for deed in story:
        goes_on(head, story, deed.after_s)
        does(head, deed)
    goes_on(head, story, 60.0)
    assert world.machines.launched == {}
    world.machines.kill(VICTIM)
    goes_on(head, story, PATIENCE_S)
    assert sum(world.machines.launched.values()) == 1, "the machine that died is replaced"
    assert world.is_alive(VICTIM)
