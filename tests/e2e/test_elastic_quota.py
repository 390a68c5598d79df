"""An elastic run whose team has a quota: its base is the team's own, the rest is lent and goes back first."""

import pytest

from tests.e2e.elastic_runs import LIVE, a_run
from tests.e2e.quota_bed import SOON_S, QuotaStory

GRACE_S = 8
WORDS = f"grace={GRACE_S},settle=0,faulty=1,snooze=1,backoff=1"


@pytest.mark.timeout(300)
def test_a_run_grows_into_what_is_lent_and_its_owner_has_it_back_within_the_grace_without_a_lost_step(
    quotas: QuotaStory,
) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    size = ("-N1", "--account=guest", "--gpus=4", "--cpus-per-task=1", "--mem=1G")
    run = a_run(quotas, *size, sizes="2", words=WORDS)
    run.trains_at(1)
    run.trains_at(2, after=1)
    replica, _ = run.replica()
    assert quotas.job(replica).fields["QOS"] == "stw-guest-b"
    assert quotas.job(run.job).fields["QOS"] == "stw-guest-g"
    assert "gres/gpu=4" in quotas.job(replica).fields["TRES"], "its nodes' part of the base's GPUs"

    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    run.trains_at(1, after=2)
    assert quotas.waited_s(mine) <= GRACE_S + 5
    assert run.replicas(LIVE) == {}
    assert quotas.job(run.job).state == "RUNNING"
    assert run.lost_steps() == 0

    quotas.end(mine)
    run.trains_at(2, after=3)
    assert run.lost_steps() == 0
    assert quotas.job(run.job).restarts == 0


def test_slurm_tells_a_script_how_many_gpus_it_asked_for_in_all(quotas: QuotaStory) -> None:
    """A replica's part is made from it."""
    quotas.account("site")
    says = quotas.script("says.sh", "echo gpus=$SLURM_GPUS\n")
    for asked in ("--gpus=4", "--gpus=l4:2"):
        job = quotas.submit(says, "--account=site", "-N1", asked)
        quotas.wait_end(job, SOON_S)
    assert quotas.lines("out") == ["gpus=4", "gpus=l4:2"]
