"""What Slurm's accounting prints is read strictly: nobody's words become somebody's rows."""

import pytest

from steward.adapters.slurm import accounting_text as text
from steward.model.accounting import Capabilities
from steward.ports import Retryable

HEAD = "Current Association Manager state\nQOS Records\n"
LINE = (
    "QOS=stw-red-g(2) UsageRaw=0.000000 GrpJobs=N(1) GrpJobsAccrue=N(0) GrpSubmitJobs=N(3) GrpWall=N(0.00) "
    "GrpTRES=cpu=48(1),mem=196608(10),energy=N(0),node=N(1),gres/gpu=2(2),gres/gpu:l4=0(2) "
    "GrpTRESMins=cpu=7(7) MaxWallPJ= PreemptMode=REQUEUE Priority=1000 Account Limits=No Accounts"
)


def test_limits_and_use_of_a_qos_are_told_apart() -> None:
    qos = text.qos_in_force(f"{HEAD}{LINE}\n")["stw-red-g"]
    assert dict(qos.limits) == {"cpu": 48, "mem": 196608, "gres/gpu": 2, "gres/gpu:l4": 0}
    assert dict(qos.used) == {"cpu": 1, "mem": 10, "node": 1, "gres/gpu": 2, "gres/gpu:l4": 2}
    assert qos.priority == 1000


@pytest.mark.parametrize("answer", ["", "garbage", "slurm_load_assoc_mgr: Unable to contact slurm controller"])
def test_what_is_no_answer_is_not_a_slurm_without_qos(answer: str) -> None:
    with pytest.raises(Retryable, match="assoc_mgr"):
        text.qos_in_force(answer)


def test_jobs_of_a_qos_are_counted_with_those_that_wait() -> None:
    assert text.jobs_of_qos(HEAD + LINE, "stw-red-g") == 3
    assert text.jobs_of_qos(HEAD + LINE, "stw-red") is None


def test_what_slurmdbd_alone_knows_joins_what_is_in_force() -> None:
    table = (
        "stw-red-g|stw-red-b,stw-blue-b|requeue|DenyOnLimit,NoDecay|1-00:01:30|steward: a|b\nother||cluster||00:00:00|x"
    )
    qos = text.with_details(text.qos_in_force(HEAD + LINE), table)
    assert set(qos) == {"stw-red-g"}
    found = qos["stw-red-g"]
    assert found.preempts == {"stw-red-b", "stw-blue-b"}
    assert (found.preempt_mode, found.grace_s, found.description) == ("REQUEUE", 86490, "steward: a|b")
    assert found.flags == {"DenyOnLimit", "NoDecay"}


def test_an_account_whose_description_pretends_to_be_another_row_gives_it_no_mark() -> None:
    told = text.accounts("evil|x|line\nred|steward|steward: team\nblue|b|\nred|physics|the real one\n")
    assert told["red"].organization == told["red"].description == ""
    assert told["blue"].organization == "b"


@pytest.mark.parametrize("name", ["a|b", "big name", "-o", "", "x" * 300, "a;b", "a=b", "a,b", "é"])
def test_an_account_with_a_name_that_is_not_plain_is_no_team(name: str) -> None:
    rows = f"bed|{name}|||root|normal||cpu=1\nbed|red|||root|normal,stw-red-g|stw-red-g|gres/gpu=3,mem=1G\n"
    found = text.associations(rows, "bed")
    assert [each.account for each in found] == ["red"]
    assert dict(found[0].limits) == {"gres/gpu": 3, "mem": 1024}
    assert found[0].qos == {"normal", "stw-red-g"}


def test_associations_of_another_cluster_are_not_ours() -> None:
    assert text.associations("bed2|red|||root|normal||\n", "bed") == ()


def test_a_qos_that_another_cluster_of_the_database_may_use_is_in_use() -> None:
    row = "bed|red|||root|normal|normal|\nbed2|red|||root|normal,stw-red-b,stw-red-g|stw-red-g|gres/gpu=8\n"
    account = "modify account where name=red cluster=bed2 set"
    assert text.who_may_use("stw-red-b", row).endswith(f"sacctmgr {account} qos-=stw-red-b")
    assert text.who_may_use("stw-red-b", row.replace("stw-red-b,", "")) == ""
    user = "modify user where name=ann account=blue cluster=bed set"
    assert text.who_may_use("stw-red-g", "bed|blue|ann|||normal|stw-red-g|\n").endswith(f"{user} defaultqos=-1")
    assert text.who_may_use("stw-red", row) == ""


def test_what_slurm_can_do_follows_from_version_and_settings() -> None:
    config = {"PreemptType": "preempt/qos", "PreemptMode": "GANG,REQUEUE"}
    marks = {**config, "PreemptParameters": "reorder_count=3,min_exempt_priority=4000000"}
    assert text.capabilities(config, (22, 5)) == Capabilities(version=(22, 5))
    assert text.capabilities(marks, (23, 2)) == Capabilities(
        version=(23, 2), marks=True, preempts=True, exempt_priority=4000000
    )
    between = [text.capabilities(marks, version) for version in ((23, 2), (24, 5), (24, 11), (25, 11), (26, 5))]
    assert [(each.marks, each.preempts, each.qos_lists) for each in between] == [
        *[(True, True, False)] * 3,
        *[(True, True, True)] * 2,
    ]
    assert not text.capabilities({}, (24, 11)).preempts


@pytest.mark.parametrize(
    ("config", "every_s"),
    [
        ({"SchedulerType": "sched/backfill"}, 30.0),
        ({"SchedulerType": "sched/backfill", "SchedulerParameters": "bf_max_time=9,bf_interval=120"}, 120.0),
        ({"SchedulerType": "sched/backfill", "SchedulerParameters": "bf_interval=-1"}, 0.0),
        ({"SchedulerType": "sched/builtin", "SchedulerParameters": "bf_interval=120"}, 0.0),
        ({}, 0.0),
    ],
)
def test_how_often_backfill_plans_is_read_from_slurms_settings(config: dict[str, str], every_s: float) -> None:
    assert text.capabilities(config, (24, 11)).backfill_s == every_s


@pytest.mark.parametrize(
    ("words", "counts"),
    [("CR_CORE_MEMORY", True), ("CR_CORE", False), ("CR_CPU,CR_LLN", False), ("CR_SOCKET_MEMORY,CR_PACK_NODES", True)],
)
def test_whether_memory_bounds_who_shares_a_node(words: str, counts: bool) -> None:
    assert text.capabilities({"SelectTypeParameters": words}, (24, 11)).counts_memory == counts
