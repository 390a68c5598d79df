"""A launch that Slurm itself broke is no error of the user's."""

from dataclasses import replace

from steward.model.action import AnswerAsk, RequeueJob
from steward.model.ask import AskKind
from steward.model.job_report import Lean
from tests.builders.failures import a_sign
from tests.unit.policy.test_resume_options import THREE, J, failed, memory, mode, opted, wishes

GRES = replace(
    a_sign(
        Lean.AMBIGUOUS, "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification"
    ),
    sign="slurm.gres",
)


def test_a_resumed_run_whose_devices_slurm_forgot_is_brought_back_and_no_node_is_blamed() -> None:
    """22.05 breaks its record of a job's devices when several of its nodes are lost at once."""
    first = failed("1", signs=(GRES,), status=1 << 8)
    assert not wishes(first, RequeueJob), "the user may ask for what there is not"
    assert wishes(first, AnswerAsk)
    resumed = opted("1").change_job(restarts=1)
    mem = replace(resumed.memory.jobs[J], restarts=1, resumes=1)
    resumed = replace(resumed, memory=replace(resumed.memory, jobs={J: mem}))
    again = (
        resumed.ask(AskKind.BATCH, mode=mode("1"), restart=1, signs=(GRES,), status=1 << 8).then(0.1).checked(*THREE)
    )
    assert [type(a) for a in again.plan().actions] == [RequeueJob]
    attempt = memory(again).attempts[-1]
    assert (attempt.culprits, attempt.why.evidence[0]) == (
        frozenset(),
        "n1: Slurm's record of the job's devices was broken when it began anew",
    )
