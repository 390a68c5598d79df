"""`steward quota doctor` and `setup` on real Slurm: traps are told with their remedy, trial jobs show what holds."""

import json
from typing import Any

from steward.testbed.accounting import sacctmgr
from steward.testbed.faults import FaultKind
from tests.e2e.quota_bed import QuotaStory


def told(quotas: QuotaStory, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and lines of `steward quota doctor`."""
    done = quotas.bed.run(["steward", "--json", "quota", "doctor", *words], check=False)
    return done.returncode, json.loads(done.text)


def texts(lines: list[dict[str, Any]], health: str) -> str:
    return "\n".join(f"{each['text']} | {each['remedy']}" for each in lines if each["health"] == health)


def is_weak(lines: list[dict[str, Any]]) -> bool:
    return "the weaker mode" in texts(lines, "warn")


def test_trial_jobs_show_what_this_slurm_holds_to_and_nothing_of_them_stays(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("tried", 2))
    status, lines = told(quotas, "--try")
    good = texts(lines, "ok")
    assert (status, texts(lines, "bad")) == (0, "")
    assert "a limit of 0 held a job up (QOSGrp" in good
    assert "after its limit was raised" in good
    assert "--gres=gpu:1" in good
    assert ("(not tried)" if is_weak(lines) else "had the node of a borrowed one after") in json.dumps(lines)
    left = [["squeue", "-h", "-A", "steward-trial"], ["sacctmgr", "-nP", "show", "account", "steward-trial"]]
    left.append(["sacctmgr", "-nP", "show", "qos", "stw-steward-trial-g,stw-steward-trial-b"])
    assert [quotas.bed.run(argv, check=False).text.strip() for argv in left] == ["", "", ""]


def test_a_qos_with_our_name_that_is_not_ours_and_an_account_that_is_missing_are_told(quotas: QuotaStory) -> None:
    quotas.account("theirs")
    sacctmgr(quotas.bed, "add", "qos", "stw-theirs-g", "Description=of the dean")
    try:
        status, lines = told(quotas, "theirs", "absent")
    finally:
        sacctmgr(quotas.bed, "delete", "qos", "where", "name=stw-theirs-g")
    assert status == 1
    assert "QOS stw-theirs-g is not ours" in texts(lines, "bad")
    assert "Slurm has no account absent: its quota waits | steward quota setup --apply" in texts(lines, "warn")


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
