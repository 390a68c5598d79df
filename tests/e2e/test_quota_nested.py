"""Teams whose accounts are one below the other, on a Slurm that counts and inherits so."""

from tests.e2e.quota_bed import SOON_S, TYPE, USER, QuotaStory


def qos_of(quotas: QuotaStory, account: str) -> set[str]:
    argv = ["sacctmgr", "--noheader", "--parsable2", "show", "association", "where", f"account={account}", "user="]
    return set(quotas.bed.run([*argv, "format=QOS"]).text.strip().replace("\n", ",").split(","))


def test_a_team_below_another_has_its_own_room_and_is_as_it_was_when_both_quotas_are_gone(quotas: QuotaStory) -> None:
    """Slurm counts the account below in the ceiling; a QOS that limits the same takes the ceiling's place."""
    quotas.account("lab", "vision")
    quotas.sacctmgr("modify", "account", "where", "name=vision", "set", "parent=lab")
    gpus = {"InstanceType": TYPE, "Accelerators": 4}
    quotas.wait_in_force(*(quotas.create(team, gpus, percent=0) for team in ("lab", "vision")))
    quotas.wait_state(quotas.sleeps("vision", 4, user=USER), "RUNNING", SOON_S)
    quotas.wait_state(quotas.sleeps("lab", 4, "--qos=normal", user=USER), "RUNNING", SOON_S)
    quotas.delete_quotas()
    assert qos_of(quotas, "vision") == {"normal"}
    quotas.sacctmgr("add", "qos", "lab-only")
    quotas.sacctmgr("modify", "account", "where", "name=lab", "set", "qos+=lab-only")
    assert qos_of(quotas, "vision") == {"normal", "lab-only"}
