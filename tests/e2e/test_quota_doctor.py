"""`steward quota doctor` and `setup` on real Slurm: traps are told with their remedy."""

import json
import time
from typing import Any

import pytest

from steward.adapters.process import Failed
from steward_bed.faults import FaultKind
from tests.e2e.changed_conf import changed_conf
from tests.e2e.quota_bed import SOON_S, TYPE, QuotaStory


def told(quotas: QuotaStory, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and lines of `steward quota doctor`."""
    done = quotas.bed.run(["steward", "--json", "quota", "doctor", *words], check=False)
    return done.returncode, json.loads(done.text)


def texts(lines: list[dict[str, Any]], health: str) -> str:
    return "\n".join(f"{each['text']} | {each['remedy']}" for each in lines if each["health"] == health)


def is_weak(lines: list[dict[str, Any]]) -> bool:
    return "the weaker mode" in texts(lines, "warn")


def test_a_user_with_a_list_of_qos_of_his_own_is_named_with_the_commands_that_mend_it(quotas: QuotaStory) -> None:
    """Slurm makes no QOS an account's default that one of its users may not use, and keeps one that a list names."""
    quotas.account("apart")
    user = ("modify", "user", "where", "name=root", "account=apart", "set")
    ours = "stw-apart-g,stw-apart-b"
    quotas.sacctmgr(*user, "qos=normal")
    id = quotas.create("apart", {"InstanceType": TYPE, "Accelerators": 2}, percent=0)

    def reason() -> str:
        found = quotas.described(id)
        return f"{found['Status']}: {found.get('FailureReason', '')}"

    quotas.wait("the quota says so", lambda: f"sacctmgr {' '.join(user)} qos+={ours}" in reason(), SOON_S)
    assert reason().startswith("CreateFailed")
    assert "without those of the team: root" in texts(told(quotas)[1], "warn")
    quotas.sacctmgr(*user, f"qos+={ours}")
    quotas.wait_in_force(id)
    quotas.delete(id)
    quotas.wait("that is said, too", lambda: f"sacctmgr {' '.join(user)} qos-={ours}" in reason(), SOON_S)
    quotas.sacctmgr(*user, f"qos-={ours}")
    quotas.wait("the quota is gone", lambda: "apart" not in str(quotas.get("/v1/quotas")["teams"]), SOON_S)


def test_a_user_whose_own_default_is_a_qos_of_a_deleted_quota_is_named_and_nothing_limits_him(
    quotas: QuotaStory,
) -> None:
    """Slurm does not let an account lose a QOS that is the default of one of its users."""
    id = quotas.gpus("kept", 2)
    quotas.wait_in_force(id)
    user = ("modify", "user", "where", "name=root", "account=kept", "set")
    quotas.sacctmgr(*user, "defaultqos=stw-kept-g")
    runs = quotas.sleeps("kept", 2)
    quotas.wait_state(runs, "RUNNING", SOON_S)
    more = quotas.sleeps("kept", 1)
    quotas.wait_says(more, "short of 1 GPU")
    quotas.delete(id)
    quotas.wait_state(more, "RUNNING", SOON_S)

    def told_of() -> str:
        return "\n".join(f"{each['status']}: {each['failure']}" for each in quotas.get("/v1/quotas")["teams"])

    remedy = "sacctmgr modify user where name=root account=kept set defaultqos=-1"
    quotas.wait("the list says so", lambda: remedy in told_of(), SOON_S)
    assert quotas.job(runs).state == "RUNNING"
    quotas.sacctmgr(*user, "defaultqos=-1")
    quotas.end(runs, more)
    quotas.wait("the quota is gone", lambda: not told_of(), SOON_S)


@pytest.mark.quotas_stay
def test_a_qos_of_the_sites_own_is_named_with_the_command_after_which_nobody_passes_limits(quotas: QuotaStory) -> None:
    """It is not ours to take away."""
    quotas.wait_in_force(quotas.gpus("tried", 2, percent=100))
    remedy = "sacctmgr modify account where name=tried set qos-=normal"
    warned = texts(told(quotas)[1], "warn")
    assert "QOS normal (--qos)" in warned
    assert remedy in warned
    quotas.sacctmgr(*remedy.split()[1:])
    quotas.wait("doctor has seen it", lambda: remedy not in texts(told(quotas)[1], "warn"), SOON_S)
    with pytest.raises(Failed, match=r"(?i)qos"):
        quotas.sleeps("tried", 1, "--qos=normal")
    quotas.wait_state(quotas.sleeps("tried", 2), "RUNNING", SOON_S)


@pytest.mark.quotas_stay
@pytest.mark.parametrize("words", ["AllowQos=normal", "DenyQos=stw-tried-g"])
def test_a_partition_that_refuses_a_teams_qos_is_named_with_the_line_to_change(quotas: QuotaStory, words: str) -> None:
    quotas.wait_in_force(quotas.gpus("tried", 2))
    with changed_conf(quotas.bed, lambda conf: conf.replace("PartitionName=main ", f"PartitionName=main {words} ")):
        warned = texts(told(quotas)[1], "warn")
        assert "partition main refuses QOS stw-tried-g" in warned
        assert "slurm.conf: PartitionName=main ... " in warned
    assert "partition main" not in texts(told(quotas)[1], "warn")


def test_a_qos_with_our_name_that_is_not_ours_and_an_account_that_is_missing_are_told(quotas: QuotaStory) -> None:
    quotas.account("theirs")
    quotas.sacctmgr("add", "qos", "stw-theirs-g", "Description=of the dean")
    try:
        status, lines = told(quotas, "theirs", "absent")
    finally:
        quotas.sacctmgr("delete", "qos", "where", "name=stw-theirs-g")
    assert status == 1
    assert "QOS stw-theirs-g is not ours" in texts(lines, "bad")
    assert "Slurm has no account absent: its quota waits | steward quota setup --apply" in texts(lines, "warn")


@pytest.mark.quotas_stay
def test_a_limit_that_an_admin_sets_by_hand_is_obeyed_and_told_until_he_gives_it_back(quotas: QuotaStory) -> None:
    began = time.time()
    quotas.wait_in_force(quotas.gpus("tried", 2))
    quotas.wait_state(quotas.sleeps("tried", 1), "RUNNING", SOON_S)
    change = ("modify", "qos", "where", "name=stw-tried-g", "set")
    quotas.sacctmgr(*change, "GrpTRES=gres/gpu=1,gres/gpu:l4=1")
    quotas.wait("it is told", lambda: quotas.events("quota.by_hand", since=began), SOON_S)
    job = quotas.sleeps("tried", 1)
    quotas.wait_says(job, "a limit that was set by hand holds it up: gres/gpu=1 of QOS stw-tried-g")
    assert quotas.limits("stw-tried-g") == {"gres/gpu": "1", "gres/gpu:l4": "1"}
    quotas.sacctmgr(*change, "GrpTRES=gres/gpu=2,gres/gpu:l4=2")
    quotas.wait_state(job, "RUNNING", SOON_S)
    quotas.wait("that is told, too", lambda: quotas.events("quota.field_back", since=began), SOON_S)


def test_a_dead_slurmdbd_is_told_and_setup_does_nothing_by_halves(quotas: QuotaStory) -> None:
    quotas.hurt(FaultKind.KILL_SLURMDBD)
    try:
        status, lines = told(quotas, "tried")
        done = quotas.bed.run(["steward", "quota", "setup", "late", "--apply"], check=False)
    finally:
        quotas.hurt(FaultKind.START_SLURMDBD)
    assert status == 1
    assert "slurmdbd" in texts(lines, "bad")
    assert done.returncode != 0
    quotas.wait("slurmdbd answers", lambda: told(quotas, "tried")[0] == 0, 30.0)
    assert quotas.bed.run(["sacctmgr", "-nP", "show", "account", "late"]).text.strip() == ""
