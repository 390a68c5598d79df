"""What `steward quota doctor` says of each trap, and what `steward quota setup` asks for."""

from dataclasses import replace

import pytest

from steward.model.accounting import QOS_MARK, Account, Accounting, Association, Capabilities, Qos
from steward.model.partition import Admission, Partition, PartitionState
from steward.ports import Permanent
from steward.workflows.doctor import DoctorLine, Health
from steward.workflows.doctor_quota import Site, conf_lines, lines, missing
from steward.workflows.quota_setup import carry_out, needed
from tests.fakes.accounting import FakeAccounting
from tests.fakes.slurm_cluster import FakeCluster

GOOD = {
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageEnforce": "associations,limits,qos",
    "AccountingStorageTRES": "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu,gres/gpu:l4,license/matlab",
    "PriorityType": "priority/multifactor",
    "PriorityWeightQOS": "1000000",
    "PreemptType": "preempt/qos",
    "PreemptMode": "REQUEUE",
    "PreemptParameters": "min_exempt_priority=4000000000",
    "JobRequeue": "1",
}
NEW = Capabilities(version=(24, 11), marks=True, qos_lists=True, preempts=True, exempt_priority=4_000_000_000)


def a_team() -> dict[str, object]:
    names = frozenset({"stw-red-g", "stw-red-b"})
    return {
        "accounts": {"red": Account(name="red")},
        "associations": (
            Association(account="root"),
            Association(account="red", parent="root", qos=names, default_qos="stw-red-g"),
            Association(account="red", user="ann", qos=names, default_qos="stw-red-g"),
        ),
        "qos": {name: Qos(name=name, description=QOS_MARK) for name in ("stw-red-g", "stw-red-b")},
    }


def site(can: Capabilities = NEW, gres: tuple[str, ...] = ("gpu:l4:4",), /, **config: str) -> Site:
    changed = {**GOOD, **config}
    picture = Accounting(
        cluster="hpc",
        enforce=frozenset(changed["AccountingStorageEnforce"].split(",")),
        tracked=frozenset(changed["AccountingStorageTRES"].split(",")),
        can=can,
        **a_team(),  # type: ignore[arg-type]
    )
    return Site(picture=picture, config=changed, gres=gres, teams=("red",), partitions=(a_partition("main"),))


ANY = Admission()


def a_partition(name: str, qos: Admission | None = ANY, accounts: Admission | None = ANY) -> Partition:
    return Partition(name=name, state=PartitionState.UP, qos=qos, accounts=accounts)


def behind(*partitions: Partition) -> Site:
    return replace(site(), partitions=partitions)


def said(of: Site, health: Health) -> list[str]:
    return [line.text for line in lines(of) if line.health is health]


def remedies(of: Site) -> str:
    return "\n".join(line.remedy for line in lines(of))


def test_while_accounts_cannot_be_read_nothing_is_said_of_them() -> None:
    away = Accounting(cluster="hpc", reachable=False, trouble="slurmdbd does not answer: no connection", can=NEW)
    found = lines(replace(site(), picture=away))
    assert "slurmdbd does not answer: no connection" in [line.text for line in found]
    assert not any(line.topic.startswith("team ") or "no account" in line.text for line in found)


def test_a_cluster_that_is_set_up_has_nothing_to_do() -> None:
    assert {line.health for line in lines(site())} == {Health.OK}
    assert conf_lines(site()) == []
    assert needed(site(), ["red"]).is_done


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"AccountingStorageType": "accounting_storage/none"}, "AccountingStorageType=accounting_storage/slurmdbd"),
        ({"AccountingStorageEnforce": "associations"}, "AccountingStorageEnforce=associations,limits,qos"),
        (
            {"AccountingStorageTRES": "cpu,mem,gres/gpu,license/matlab"},
            "AccountingStorageTRES=license/matlab,gres/gpu,gres/gpu:l4",
        ),
    ],
)
def test_what_keeps_quotas_from_working_names_the_line_to_add(config: dict[str, str], line: str) -> None:
    ill = site(**config)
    assert line in missing(ill)[0].remedy
    assert line in conf_lines(ill)
    port = FakeAccounting(cluster=FakeCluster())
    with pytest.raises(Permanent, match="Nothing was changed"):
        carry_out(needed(ill, ["red"]), ill, port)
    assert port.edits == 0


def test_without_slurmdbd_nothing_is_half_set_up() -> None:
    ill = replace(site(), picture=replace(site().picture, reachable=False))
    assert "slurmdbd does not answer" in missing(ill)[0].text


@pytest.mark.parametrize(
    ("config", "text", "remedy"),
    [
        ({"PriorityWeightQOS": "0"}, "borrowers may start before owners", "PriorityWeightQOS=1000000"),
        ({"JobRequeue": "0"}, "an evicted job is cancelled", "JobRequeue=1"),
        ({"PreemptExemptTime": "01:00:00"}, "Slurm spares jobs that ran for less", "PreemptExemptTime=00:00:00"),
        ({"SchedulerParameters": "bf_max_job_test=100"}, "counts twice", "bf_max_job_test=1000"),
    ],
)
def test_a_trap_of_the_settings_is_told_with_its_remedy(config: dict[str, str], text: str, remedy: str) -> None:
    trapped = site(**config)
    assert any(text in each for each in said(trapped, Health.WARN))
    assert remedy in remedies(trapped)


@pytest.mark.parametrize(
    ("version", "config", "text"),
    [
        (
            (26, 5),
            {},
            "the team that borrowed most is evicted first; of its jobs the one on the fewest nodes, then the oldest",
        ),
        (
            (26, 5),
            {"PreemptParameters": "youngest_first,min_exempt_priority=4000000000"},
            "the newest of all borrowing jobs",
        ),
        ((26, 5), {"SchedulerParameters": "preempt_youngest_first"}, "the newest of all borrowing jobs is evicted"),
        ((22, 5), {}, "the team that borrowed most is evicted first; of its jobs the lowest class, then the newest"),
    ],
)
def test_who_is_evicted_first_is_told(version: tuple[int, int], config: dict[str, str], text: str) -> None:
    assert any(text in each for each in said(site(replace(NEW, version=version), **config), Health.OK))


def test_a_site_that_wants_the_newest_to_be_evicted_keeps_its_word() -> None:
    can = Capabilities(version=(24, 11), preempts=True)
    config = {"PreemptType": "preempt/qos", "PreemptParameters": "youngest_first"}
    assert conf_lines(site(can, **config)) == ["PreemptParameters=youngest_first,min_exempt_priority=4000000000"]


def test_priorities_above_the_mark_are_told_of() -> None:
    can = replace(NEW, exempt_priority=500_000)
    trapped = site(can, PreemptParameters="min_exempt_priority=500000")
    assert any("no job could be preempted" in each for each in said(trapped, Health.BAD))


def test_without_marks_or_preemption_the_lines_are_asked_for() -> None:
    can = Capabilities(version=(24, 11), qos_lists=True)
    poor = site(can, PreemptType="preempt/none", PreemptMode="OFF", PreemptParameters="reorder_count=2")
    assert conf_lines(poor) == [
        "PreemptType=preempt/qos\nPreemptMode=REQUEUE",
        "PreemptParameters=reorder_count=2,min_exempt_priority=4000000000",
    ]


def test_the_oldest_slurm_is_told_to_be_the_weaker_mode_and_never_gets_a_word_that_it_refuses() -> None:
    old = site(Capabilities(version=(22, 5)), PreemptParameters="", PreemptType="preempt/none")
    assert any("weaker mode" in each for each in said(old, Health.WARN))
    assert not any("Preempt" in line for line in conf_lines(old))


def test_gpus_of_two_types_can_be_asked_for_without_a_type() -> None:
    mixed = site(NEW, ("gpu:l4:4", "gpu:h100:8"), AccountingStorageTRES="cpu,gres/gpu,gres/gpu:l4,gres/gpu:h100")
    assert any("passes the limits of each type" in each for each in said(mixed, Health.WARN))


def teams_lines(picture: Accounting) -> list[DoctorLine]:
    return [line for line in lines(replace(site(), picture=picture)) if line.topic == "team red"]


def test_a_team_without_an_account_waits_for_setup() -> None:
    picture = replace(site().picture, accounts={}, associations=())
    assert teams_lines(picture)[0].remedy == "steward quota setup --apply"


def test_a_qos_with_our_name_that_is_not_ours_is_told_of() -> None:
    picture = site().picture
    theirs = {**picture.qos, "stw-red-g": Qos(name="stw-red-g", description="the dean's")}
    assert "is not ours" in teams_lines(replace(picture, qos=theirs))[0].text


def test_users_with_a_list_of_their_own_are_told_of_with_the_command() -> None:
    picture = site().picture
    bob = Association(account="red", user="bob", qos=frozenset({"normal"}))
    line = teams_lines(replace(picture, associations=(*picture.associations, bob)))[0]
    assert line.remedy == "sacctmgr modify user where name=bob account=red set qos+=stw-red-g,stw-red-b"


def test_a_qos_of_the_sites_own_is_told_as_a_way_around_the_quota() -> None:
    picture = site().picture
    root, account, ann = picture.associations
    both = replace(account, qos=account.qos | {"normal", "night"})
    (line,) = teams_lines(replace(picture, associations=(root, both, ann)))
    assert "its users may choose QOS night,normal (--qos)" in line.text
    assert line.remedy == "sacctmgr modify account where name=red set qos-=night,normal"
    bare = replace(account, qos=frozenset({"normal"}))
    assert teams_lines(replace(picture, associations=(root, bare)))[0].health is Health.OK  # no quota in force yet


def test_sub_accounts_may_use_what_is_the_teams_and_strangers_may_not() -> None:
    picture = site().picture
    names = frozenset({"stw-red-g"})
    child = Association(account="red-lab", parent="red", qos=names)
    assert teams_lines(replace(picture, associations=(*picture.associations, child)))[0].health is Health.OK
    stranger = Association(account="blue", parent="root", qos=names)
    told = teams_lines(replace(picture, associations=(*picture.associations, stranger)))[0]
    assert "not of the team" in told.text


def test_setup_makes_what_a_team_lacks_once_and_prints_it_as_an_admin_would_type_it() -> None:
    port = FakeAccounting(cluster=FakeCluster())
    port.add_account("blue")
    before = Site(picture=port.picture(), config=GOOD, gres=("gpu:l4:4",), teams=("red", "blue"))
    setup = needed(before, ["red"])
    assert list(setup.commands("hpc")) == [
        "sacctmgr -i add account red cluster=hpc organization=steward description='steward: team'",
        "sacctmgr -i add qos stw-blue-g description='steward: limits of a team'",
        "sacctmgr -i add qos stw-red-g description='steward: limits of a team'",
        "sacctmgr -i add qos stw-red-b description='steward: limits of a team'",
        "sacctmgr -i modify account where name=blue cluster=hpc set qos+=stw-blue-g",
        "sacctmgr -i modify account where name=blue cluster=hpc set defaultqos=stw-blue-g",
        "sacctmgr -i modify account where name=red cluster=hpc set qos+=stw-red-g,stw-red-b",
        "sacctmgr -i modify account where name=red cluster=hpc set defaultqos=stw-red-g",
    ]
    carry_out(setup, before, port)
    assert port.accounts["blue"].organization == "blue"
    assert port.teams["blue"].qos == {"normal", "stw-blue-g"}
    assert needed(replace(before, picture=port.picture()), ["red"]).is_done


@pytest.mark.parametrize(
    ("qos", "refused", "line"),
    [
        (Admission(allow=frozenset({"normal"})), "stw-red-g, stw-red-b", "AllowQos=normal,stw-red-g,stw-red-b"),
        (Admission(allow=frozenset({"normal", "stw-red-g"})), "stw-red-b", "AllowQos=normal,stw-red-g,stw-red-b"),
        (Admission(deny=frozenset({"old", "stw-red-b"})), "stw-red-b", "DenyQos=old"),
        (Admission(deny=frozenset({"stw-red-b"})), "stw-red-b", "(without DenyQos)"),
    ],
)
def test_a_partition_that_refuses_the_teams_qos_is_named_with_the_line_to_change(
    qos: Admission, refused: str, line: str
) -> None:
    looked = behind(a_partition("main"), a_partition("gpu", qos))
    assert said(looked, Health.WARN) == [f"partition gpu refuses QOS {refused}: the team's jobs there do not start"]
    assert f"slurm.conf: PartitionName=gpu ... {line}; scontrol reconfigure" in remedies(looked)


def test_a_partition_of_other_accounts_is_not_the_teams_unless_there_is_no_other() -> None:
    blue = Admission(allow=frozenset({"blue"}))
    closed = a_partition("blue", Admission(allow=frozenset({"normal"})), blue)
    assert said(behind(a_partition("main"), closed), Health.WARN) == []
    assert said(behind(closed), Health.WARN) == [
        "partition blue refuses account red, and no other takes it: its jobs do not start"
    ]
    assert "PartitionName=blue ... AllowAccounts=blue,red;" in remedies(behind(closed))
    above = a_partition("main", accounts=Admission(allow=frozenset({"root"})))
    assert said(behind(above), Health.WARN) == []


@pytest.mark.parametrize(
    ("limits", "flags", "passed"),
    [
        ({"gres/gpu": 6, "node": 2}, frozenset[str](), "gres/gpu"),
        ({"gres/gpu": 6}, frozenset({"OverPartQOS"}), ""),
        ({"node": 2}, frozenset[str](), ""),
    ],
    ids=["the same is limited", "ours comes first", "something else is limited"],
)
def test_a_partition_whose_own_qos_takes_the_place_of_the_teams_limits_is_named_with_the_remedy(
    limits: dict[str, int], flags: frozenset[str], passed: str
) -> None:
    looked = behind(replace(a_partition("main"), own_qos="part"))
    ours = {name: replace(each, flags=flags) for name, each in looked.picture.qos.items()}
    qos = {**ours, "part": Qos(name="part", limits=limits)}
    looked = replace(looked, picture=replace(looked.picture, qos=qos))
    text = f"the limits of {passed} of partition main (QOS part) count there in the team's place"
    assert said(looked, Health.WARN) == ([text] if passed else [])
    remedy = "sacctmgr modify qos where name=stw-red-g,stw-red-b set flags+=OverPartQOS"
    assert (remedy in remedies(looked)) is bool(passed)


def test_what_is_not_known_of_partitions_is_not_called_good() -> None:
    assert said(behind(a_partition("main", qos=None)), Health.WARN) == [
        "not known which QOS and accounts partition main takes"
    ]
    assert said(replace(site(), partitions=None), Health.WARN) == [
        "not known which QOS and accounts the partitions take"
    ]
