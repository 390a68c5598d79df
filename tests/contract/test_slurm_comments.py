"""The admin comment of a job, on the fake and on real Slurm: ours is replaced, what others wrote stays."""

import pytest

from steward.ports import Permanent, Stale
from tests.contract.slurm_worlds import SlurmWorld


def test_a_comment_of_ours_stands_behind_what_others_wrote_and_only_ours_is_replaced(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    waiting = slurm_world.submit(hold=True)
    slurm_world.comment_by_admin(job, "ticket 77: ask Ann")
    slurm_world.port.comment(job, "steward: resumed 1x (n3 xid79 14:02Z)")
    slurm_world.port.comment(job, 'steward: resumed 2x (n3 "it\'s" 50 % a=b;c, d)')
    slurm_world.port.comment(waiting, "steward: resumed 1x")

    assert slurm_world.job(job).admin_comment == 'ticket 77: ask Ann | steward: resumed 2x (n3 "it\'s" 50 % a=b;c, d)'
    assert slurm_world.job(waiting).admin_comment == "steward: resumed 1x"


@pytest.mark.parametrize("text", ["hello", "steward: a\nJobState=FAILED", "steward: a | b", "steward: " + "x" * 200])
def test_a_comment_that_is_not_one_short_line_of_ours_is_refused(slurm_world: SlurmWorld, text: str) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    with pytest.raises(Permanent, match="not a comment of ours"):
        slurm_world.port.comment(job, text)


def test_a_job_that_has_ended_takes_no_comment_any_more(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.finish(job, 3 << 8)
    slurm_world.wait("it is over", lambda: slurm_world.job(job).is_over)
    with pytest.raises(Stale):
        slurm_world.port.comment(job, "steward: stopped")
