"""Users who want more than their team's part: Slurm or Steward refuses, and owners still get their own back."""

import time

import pytest

from tests.e2e.quota_bed import GRACE_S, SOON_S, TYPE, USER, QuotaStory

pytestmark = pytest.mark.quotas_stay

GPUS = f"{TYPE}/gpu"


def full(quotas: QuotaStory) -> tuple[int, int]:
    """Team guest runs a job of its own and one that borrows, both of USER; team owner lends all that it has."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4, user=USER)
    quotas.wait_state(own, "RUNNING", SOON_S)
    lent = quotas.sleeps("guest", 4, user=USER)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    return own, lent


def refused(quotas: QuotaStory, *argv: str) -> bool:
    return quotas.bed.run(list(argv), user=USER, check=False).returncode != 0


def test_what_a_user_may_change_of_his_borrowed_job_does_not_keep_it(quotas: QuotaStory) -> None:
    own, lent = full(quotas)
    update = ("scontrol", "update", f"jobid={lent}")
    assert refused(quotas, *update, "priority=4294967290")
    assert refused(quotas, *update, "nice=-1000")
    assert refused(quotas, *update, "qos=stw-guest-g")
    assert refused(quotas, *update, "qos=stw-owner-g")
    assert refused(quotas, *update, "account=owner", "qos=normal")
    assert refused(quotas, *update, "admincomment=steward: quota lets it run")
    assert refused(
        quotas, "sacctmgr", "-i", "modify", "qos", "stw-guest-b", "set", "GrpTRES=gres/gpu=8", "Priority=9999"
    )
    quotas.bed.run([*update, "comment=priority-class=highest elastic=yes"], user=USER)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    assert quotas.job(own).state == "RUNNING"
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")


def test_a_job_that_may_not_be_requeued_and_ignores_signals_is_evicted_all_the_same(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    quotas.wait_state(quotas.sleeps("guest", 4), "RUNNING", SOON_S)
    lent = quotas.ignores_signals("guest", 4, "--no-requeue", user=USER)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait_end(lent)


def test_a_borrower_that_saves_on_its_signal_and_ends_well_comes_back_unless_its_user_cancels_it_then(
    quotas: QuotaStory,
) -> None:
    """It is not done: it was told to make room. Where Slurm makes the room (23.02 and newer) this is Slurm's to say."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    script = quotas.script("saves.sh", "trap 'exit 0' TERM\nwhile :; do sleep 0.2; done\n")
    size = ("--gres=gpu:l4:2", "--nodes=1", "--ntasks=1", "--mem=1G", "--output=/dev/null", "--requeue")
    jobs = [quotas.submit(script, "--account=guest", *size) for _ in range(4)]
    for job in jobs:
        quotas.wait_state(job, "RUNNING", SOON_S)
    owner = quotas.sleeps("owner", 2)
    quotas.wait_state(owner, "RUNNING", SOON_S)
    quotas.wait("all are there still", lambda: {quotas.job(job).state for job in jobs} == {"RUNNING", "PENDING"})
    quotas.end(owner)
    quotas.wait("all run", lambda: {quotas.job(job).state for job in jobs} == {"RUNNING"}, SOON_S)

    runs = {job: quotas.job(job).restarts for job in jobs}
    owner = quotas.sleeps("owner", 2)

    def back() -> list[int]:
        return [job for job in jobs if quotas.job(job).restarts > runs[job]]

    quotas.wait("one of them is put back", back, SOON_S)
    (gone,) = back()
    quotas.end(gone)  # Slurm may still clean up after its last run
    quotas.wait_state(owner, "RUNNING", SOON_S)
    quotas.end(owner)
    quotas.wait("the others run", lambda: [quotas.job(j).state for j in jobs if j != gone] == ["RUNNING"] * 3, SOON_S)
    assert quotas.job(gone).state == "CANCELLED"


def test_a_job_in_a_qos_of_the_sites_own_is_held_to_the_ceiling_and_is_evicted_all_the_same(quotas: QuotaStory) -> None:
    """Accounts keep the QOS that they had: `--qos=normal` passes the limits of both of ours."""
    quotas.wait_in_force(quotas.gpus("owner", 4, strategy="DontLend"), quotas.gpus("guest", 4, percent=100))
    own, more = (quotas.sleeps("guest", 4, "--qos=normal", user=USER) for _ in range(2))
    quotas.wait_state(own, "RUNNING", SOON_S)
    quotas.wait_state(more, "RUNNING", SOON_S)
    third = quotas.sleeps("guest", 1, "--qos=normal", user=USER)
    quotas.wait("the ceiling holds it up", lambda: quotas.job(third).fields["Reason"] == "AssocGrpGRES", SOON_S)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    assert quotas.job(own).state == "RUNNING"
    quotas.wait_says(more, f"was evicted for job {mine} of team owner")


def test_a_user_who_chooses_a_qos_himself_gets_no_more_than_his_team_may_have(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4, strategy="DontLend"), quotas.gpus("guest", 2, percent=50))
    with pytest.raises(Exception, match=r"(?i)qos"):
        quotas.sleeps("guest", 1, "--qos=stw-owner-g", user=USER)
    borrows = quotas.sleeps("guest", 2, "--qos=stw-guest-b", user=USER)
    quotas.wait_state(borrows, "RUNNING", SOON_S)
    more = [
        quotas.sleeps("guest", 2, f"--qos={qos}", "--deadline=now+1hour", "--time=10", user=USER)
        for qos in ("stw-guest-g", "stw-guest-b")
    ]
    for job in more:
        quotas.wait_says(job, "short of 2 GPUs")
        quotas.bed.run(["scontrol", "hold", str(job)], user=USER)
        quotas.wait_says(job, "the job is not ready to run")
        quotas.bed.run(["scontrol", "release", str(job)], user=USER)
        quotas.wait_says(job, "short of 2 GPUs")
    assert [quotas.job(job).state for job in more] == ["PENDING", "PENDING"]
    quotas.wait("what runs is counted", lambda: quotas.team("guest")[GPUS]["in_use"] == 2, SOON_S)


def test_a_whole_machine_taken_with_one_gpu_counts_as_all_of_it(quotas: QuotaStory) -> None:
    """Slurm counts every GPU of an exclusive node, and its user reads why one GPU is too many."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 2, percent=50))
    size = ("--gres=gpu:l4:1", "--nodes=1", "--ntasks=1")
    greedy = quotas.asks("guest", *size, "--exclusive", user=USER)
    quotas.wait_says(greedy, "the job never fits: it asks for 4 GPUs of")
    quotas.wait_state(quotas.asks("guest", *size, "--mem=1G", user=USER), "RUNNING", SOON_S)
    assert quotas.job(greedy).state == "PENDING"


def test_a_waiting_job_that_its_user_gives_to_his_other_team_runs_there(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 2), quotas.gpus("guest", 2))
    quotas.wait_state(quotas.sleeps("owner", 2, user=USER), "RUNNING", SOON_S)
    moved = quotas.sleeps("owner", 2, user=USER)
    quotas.wait_says(moved, "short of 2 GPUs")
    quotas.bed.run(["scontrol", "update", f"jobid={moved}", "account=guest"], user=USER)
    quotas.wait_state(moved, "RUNNING", SOON_S)
    assert quotas.job(moved).fields["QOS"].split(",")[0] == "stw-guest-g"
    use = {"owner": 2, "guest": 2}
    quotas.wait("each uses two", lambda: {team: quotas.team(team)[GPUS]["in_use"] for team in use} == use, SOON_S)


def cancel_in_the_grace(quotas: QuotaStory, words: tuple[str, ...], *after_s: float) -> None:
    """For each number of seconds a borrower has to go, and that long after it was told its user ends it."""
    began = time.time()
    lent = [quotas.ignores_signals("guest", 1, user=USER) for _ in after_s]
    for job in lent:
        quotas.wait_state(job, "RUNNING", SOON_S)
    mine = [quotas.sleeps("owner", 1) for _ in after_s]

    def told() -> dict[int, float]:
        return {event["job"]: event["at"] for event in quotas.events("quota.evicting", since=began)}

    quotas.wait("they have to go", lambda: told().keys() >= set(lent), SOON_S)
    due = sorted((told()[job] + after, job) for job, after in zip(lent, after_s, strict=True))
    for at, job in due:
        time.sleep(max(0.0, at - time.time()))
        quotas.bed.run([*words, str(job)], user=USER, check=False)
    for job, state in ((job, state) for jobs, state in ((mine, "RUNNING"), (lent, "CANCELLED")) for job in jobs):
        quotas.wait_state(job, state, SOON_S)
    quotas.end(*mine)
    for job in mine:
        quotas.wait_state(job, "CANCELLED", SOON_S)
    seen = time.time()
    quotas.wait("what would put them back had its turn", lambda: time.time() > seen + 1.5)
    assert {quotas.job(job).state for job in lent} == {"CANCELLED"}, quotas.events("quota.", since=began)


def test_a_borrower_that_its_user_cancels_stays_cancelled_whenever_he_does_it(quotas: QuotaStory) -> None:
    """In the grace and in the moment of the requeue, all at once or by a signal."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    for _ in range(4):
        quotas.wait_state(quotas.sleeps("guest", 1), "RUNNING", SOON_S)
    for words, after_s in (
        (("scancel",), (0.2, GRACE_S - 0.1, GRACE_S + 0.3, GRACE_S + 1.0)),
        (("scancel", "--signal=KILL"), (0.2, GRACE_S, GRACE_S + 0.5, GRACE_S + 1.0)),
    ):
        cancel_in_the_grace(quotas, words, *after_s)
    quotas.delete_quotas()  # though Slurm 22.05 goes on counting jobs that were cancelled while they were requeued


def test_names_that_no_machine_has_change_nothing_for_the_others(quotas: QuotaStory) -> None:
    """Whoever coordinates an account may name others as he likes."""
    quotas.wait_in_force(quotas.gpus("guest", 2))
    quotas.sacctmgr("add", "account", "x|stw-guest-g;$(id)", "Parent=guest", "Description=a|b", "Organization=o")
    quotas.sacctmgr("add", "user", "u|v'--", "Account=guest")
    try:
        job = quotas.sleeps("guest", 2, user=USER)
        quotas.wait_state(job, "RUNNING", SOON_S)
        more = quotas.sleeps("guest", 1, "--job-name=x|y;$(id) JobState=RUNNING", '--comment=a|b\' "c"', user=USER)
        quotas.wait_says(more, "short of 1 GPU")
        quotas.wait("the team's own job counts", lambda: quotas.team("guest")[GPUS]["in_use"] == 2, SOON_S)
    finally:
        quotas.end(*quotas.jobs)
        quotas.sacctmgr("delete", "user", "where", "name=u|v'--")
        quotas.sacctmgr("delete", "account", "where", "name=x|stw-guest-g;$(id)")
