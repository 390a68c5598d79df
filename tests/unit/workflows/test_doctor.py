"""What the doctor makes of what it finds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steward.model.health import Finding, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.leadership import Heads, OtherHead
from steward.model.observed import AgentDetail
from steward.model.settings import Problem, Settings, SettingsError, parse
from steward.workflows.doctor import (
    DoctorLine,
    Health,
    judge_addresses,
    judge_agents,
    judge_channels,
    judge_dynamic,
    judge_fit,
    judge_heads,
    judge_include,
    judge_lent,
    judge_loaded,
    judge_reread,
    judge_shim,
    judge_slurm,
    judge_topology,
)
from tests.builders.picture import a_cluster, an_agent, n

GOOD = {"ReturnToService": "2", "SlurmdTimeout": "300 sec", "MinJobAge": "300 sec", "JobRequeue": "1"}
PLUGSTACK = Path("/etc/slurm/plugstack.conf")


def worst(lines: list[DoctorLine]) -> list[DoctorLine]:
    return [line for line in lines if line.health is not Health.OK]


def test_slurms_usual_settings_are_well() -> None:
    assert worst(judge_slurm(GOOD)) == []


@pytest.mark.parametrize(
    ("key", "value", "health"),
    [
        ("ReturnToService", "1", Health.WARN),
        ("SlurmdTimeout", "5 sec", Health.WARN),
        ("MinJobAge", "2 sec", Health.BAD),
        ("RequeueExit", "1-255", Health.WARN),
        ("MaxBatchRequeue", "1", Health.WARN),
    ],
)
def test_a_setting_that_spoils_things_is_told_with_its_remedy(key: str, value: str, health: Health) -> None:
    (line,) = worst(judge_slurm({**GOOD, key: value}))
    assert line.health is health
    assert key in line.text
    assert line.remedy


def test_settings_that_could_not_be_read_are_not_called_well() -> None:
    assert {line.health for line in worst(judge_slurm({}))} == {Health.WARN, Health.BAD}


@pytest.mark.parametrize(
    ("text", "health"),
    [
        ("optional steward.so socket=/run/steward/agent.sock\n", Health.WARN),
        ("required steward.so\n", Health.WARN),
        ("# optional steward.so\n", Health.BAD),
        ("include /etc/slurm/plugstack.conf.d/*.conf\n", Health.WARN),
        ("optional /nowhere/steward.so\n", Health.BAD),
        ("", Health.BAD),
        (None, Health.BAD),
    ],
)
def test_the_shim_is_looked_for_in_plugstack_conf(text: str | None, health: Health) -> None:
    (line,) = judge_shim(PLUGSTACK, text)
    assert line.health is health
    assert (line.health is Health.OK) == (line.remedy == "")


def judged(nodes: int = 3, **details: AgentDetail) -> dict[str, DoctorLine]:
    views = {n(f"n{i}"): an_agent(n(f"n{i}")) for i in range(1, 4)}
    known = {n(name): detail for name, detail in details.items()}
    lines = judge_agents(a_cluster(nodes).seen.nodes.keys(), views, known, "1.0", is_new=False)
    return {f"{line.topic} {line.health.value}": line for line in lines}


def test_agents_that_are_all_there_and_alike_are_well() -> None:
    assert set(judged(n1=AgentDetail(version="1.0", skew_s=0.2))) == {"agents ok", "versions ok", "clocks ok"}


def test_a_node_without_an_agent_is_named() -> None:
    assert "n4" in judged(nodes=4)["agents warn"].text


def test_many_nodes_are_one_folded_list() -> None:
    assert judged(nodes=60)["agents warn"].text == "57 of 60 nodes have no connected agent: n[4-60]"


def test_agents_that_refuse_this_head_are_named_with_their_own_words() -> None:
    why = "its agent refuses this head: a credential of uid 64030 was refused; only uids [0] are accepted"
    gone = {name: replace(an_agent(name), connected=False, lost_why=why) for name in (n("n1"), n("n2"))}
    line, *_ = judge_agents(a_cluster(2).seen.nodes.keys(), gone, {}, "1.0", is_new=False)
    assert (line.topic, line.health, line.text) == ("agents", Health.BAD, f"on n[1-2]: {why}")
    assert "run stewardd as SlurmUser" in line.remedy


def test_no_agent_at_all_is_bad() -> None:
    (line, *_) = judge_agents([NodeName("n1")], {}, {}, "1.0", is_new=False)
    assert line.health is Health.BAD


def test_a_new_install_without_agents_and_plugin_is_as_expected() -> None:
    (agents, *_) = judge_agents([NodeName("n1")], {}, {}, "1.0", is_new=True)
    for line in (agents, *judge_shim(PLUGSTACK, None, is_new=True), *judge_shim(PLUGSTACK, "", is_new=True)):
        assert line.health is Health.WARN
        assert "expected before step" in line.text


def test_a_plugin_that_is_named_and_not_there_is_bad_in_a_new_install_too() -> None:
    (line,) = judge_shim(PLUGSTACK, "optional /nowhere/steward.so\n", is_new=True)
    assert line.health is Health.BAD


def test_an_agent_of_a_node_that_slurm_does_not_know_is_named() -> None:
    assert "n3" in judged(nodes=2)["agents warn"].text


def test_other_versions_and_wrong_clocks_are_named() -> None:
    found = judged(n2=AgentDetail(version="0.9", skew_s=-30.0))
    assert "n2" in found["versions warn"].text
    assert "n2" in found["clocks warn"].text


def test_a_file_of_partitions_that_is_included_and_writable_is_well() -> None:
    assert worst(judge_include("include p.conf", True, "")) == []


def test_the_line_that_slurm_conf_lacks_is_told() -> None:
    (line,) = worst(judge_include("include p.conf", False, ""))
    assert "`include p.conf`" in line.remedy


def test_a_file_of_partitions_that_cannot_be_written_is_bad() -> None:
    (line,) = worst(judge_include("include p.conf", True, "/etc/slurm is not writable"))
    assert "/etc/slurm is not writable" in line.text


def test_lent_partitions_must_be_there() -> None:
    assert worst(judge_lent({"dev"}, {"dev", "main"})) == []
    (line,) = worst(judge_lent({"dev", "x"}, {"dev"}))
    assert "partition x" in line.text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ""),
        ({"MaxNodeCount": "0"}, "MaxNodeCount"),
        ({"SelectType": "select/linear"}, "select/linear"),
        ({"TreeWidth": "16"}, "TreeWidth"),
        ({"TopologyPlugin": "topology/tree"}, "slurmd may not start on a node that the topology does not name"),
        ({"TopologyPlugin": "topology/none"}, ""),
    ],
)
def test_what_dynamic_nodes_need_is_told(changes: dict[str, str], told: str) -> None:
    good = {"MaxNodeCount": "100", "SelectType": "select/cons_tres", "TreeWidth": "65533"}
    found = worst(judge_dynamic({**good, **changes}))
    assert [told in line.text and bool(line.remedy) for line in found] == ([True] if told else [])


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("", []),
        ("SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=n3\n", []),
        ("SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n", ["n3"]),
        ("BlockName=b1 BlockIndex=0 Nodes=n1 BlockSize=1\nBlockName=b2 BlockIndex=1 Nodes=(null)\n", ["n[2-3]"]),
    ],
)
def test_nodes_that_slurms_topology_does_not_name_are_told(shown: str, told: list[str]) -> None:
    found = worst(judge_topology([n("n1"), n("n2"), n("n3")], shown))
    assert [line.text.split()[3] for line in found] == told


@pytest.mark.parametrize(
    ("moved", "unknown", "told"),
    [
        ([], [], "agents connect from the known addresses of their nodes"),
        ([], [n("n2")], "no address is known to compare with, or none is wanted: n2"),
        ([n("n1")], [n("n2")], "neither Slurm nor the provider knows for their nodes: n1"),
    ],
)
def test_what_is_known_of_the_addresses_of_agents_is_told(
    moved: list[NodeName], unknown: list[NodeName], told: str
) -> None:
    [line] = judge_addresses(moved, unknown)
    assert line.text.endswith(told)


def test_nodes_whose_steps_do_not_load_the_shim_are_named_by_what_they_found_themselves() -> None:
    """A configless node has its files from slurmctld: one beside the controller's slurm.conf says nothing of it."""
    text = "/run/slurm/conf/plugstack.conf is not there"
    missing = Finding(check="slurm.shim", outcome=Outcome.FAILED, severity=Severity.INFO, text=text, at=1.0)
    views = {n("n1"): an_agent(n("n1")), n("n2"): replace(an_agent(n("n2")), findings=(missing,))}
    assert judge_loaded({n("n1")}, {n("n1"): views[n("n1")]}) == []
    loaded = {**views, n("n1"): replace(views[n("n1")], passed=frozenset({"slurm.shim"}))}
    [fine] = judge_loaded({n("n1")}, loaded)  # n2 is deleted
    assert (fine.health, fine.text) == (Health.OK, "Slurm loads it on n1")
    [line] = judge_loaded(views.keys(), views)
    assert line.text == f"jobs on n2 have no shim: {text} (looked at every 60 s)"
    assert "scontrol reconfigure" in line.remedy


FILE = Path("/etc/steward/steward.toml")


def settings(text: str = "") -> Settings:
    return parse(f'[agent]\nhead = "head1:6861"\n{text}', source=str(FILE), env={})


RUNS_WITH = settings(
    '[repair]\nmode = "act"\n[[notify]]\nname = "ops"\nkind = "webhook"\nurl = "https://a.example/s3cret"'
)


def test_settings_that_the_head_runs_with_are_well() -> None:
    assert worst(judge_reread(FILE, RUNS_WITH, lambda: RUNS_WITH)) == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[repair]\nmode = "report"', "repair.mode"),
        ('[[groups]]\nname = "gpu"\nnodes = "n1"\nprovider = "static"\n[provider.static]', "groups"),
        ("[checks.disk]\nfull_percent = 80", "checks.disk"),
        ('[[notify]]\nname = "ops"\nkind = "webhook"\nurl = "https://a.example/other"', "notify"),
    ],
)
def test_a_setting_that_was_changed_since_the_start_is_named_with_what_puts_it_in_force(text: str, key: str) -> None:
    [line] = judge_reread(FILE, RUNS_WITH, lambda: settings(text))
    assert (line.health, "s3cret" in line.text, "other" in line.text) == (Health.WARN, False, False)
    assert key in line.text
    assert "`systemctl restart stewardd`" in line.remedy
    assert ("steward-agent" in line.remedy) is key.startswith("checks")


def test_a_file_with_which_the_head_would_not_start_again_is_told() -> None:
    def reread() -> Settings:
        raise SettingsError(str(FILE), [Problem(key="repair.mode", text='repair.mode = "Act": use "act"')])

    [line] = judge_reread(FILE, RUNS_WITH, reread)
    assert line.health is Health.BAD
    assert 'repair.mode = "Act"' in line.text
    assert "does not start again" in line.text


def test_settings_that_do_not_fit_slurm_are_told_with_their_remedies() -> None:
    found = judge_fit([Problem.of("groups[0].nodes", "n4", "nodes that Slurm has (`sinfo -N` lists them)")])
    assert [(line.health, line.text) for line in found] == [(Health.WARN, 'groups[0].nodes = "n4"')]
    assert "nodes that Slurm has" in found[0].remedy
    assert judge_fit([]) == []


def test_a_channel_for_a_group_that_is_not_there_is_told_and_one_of_the_api_is_there() -> None:
    channel = '[[notify]]\nname="ops"\nkind="webhook"\nurl="https://a.example"\ngroups=["workers", "gpu"]\n'
    made = '[capacity]\nprovider="command"\n[provider.command]\nlaunch=["/x"]\nterminate=["/x"]\nlist=["/x"]\n'
    assert judge_channels(settings(channel + made), {"workers", "gpu"}) == []
    [line] = judge_channels(settings(channel + made), {"workers"})
    assert (line.health, line.text) == (Health.WARN, "notify channel ops is for group gpu, which is not there")


def _other(**said: Any) -> OtherHead:
    known: dict[str, Any] = {"is_heard": True, "picture_s": 12.0, "trouble": "", "version": "1.0"}
    return OtherHead(name="head2:6861", **{**known, **said})


def _heads(*others: OtherHead, trouble: str = "") -> Heads:
    return Heads(
        is_mine=True,
        picture_s=None,
        leader="head1:6861",
        epoch=7,
        since=5.0,
        is_beside_slurmctld=True,
        trouble=trouble,
        others=others,
    )


def test_a_head_alone_has_no_line_on_heads() -> None:
    assert judge_heads(None, "1.0") == []


def test_a_follower_that_could_take_over_is_told_with_the_age_of_its_picture() -> None:
    leads, ready = judge_heads(_heads(_other()), "1.0")

    assert (leads.health, leads.text[:18]) == (Health.OK, "head1:6861 leads, ")
    assert (ready.health, ready.text) == (
        Health.OK,
        "head2:6861 could take over now; its picture of Slurm is 12 s old",
    )


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (_other(is_heard=False), "it is not heard"),
        (_other(trouble="scontrol failed: no answer"), "scontrol failed: no answer"),
    ],
)
def test_a_follower_that_could_not_take_over_is_told_with_the_reason(other: OtherHead, why: str) -> None:
    told = judge_heads(_heads(other), "1.0")[-1]

    assert (told.health, told.text) == (Health.WARN, f"head2:6861 could not take over now: {why}")


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (_other(version="1.1"), "head2:6861 is 1.1, the leader 1.0"),
        (_other(ahead_s=30.2), "the clock of head2:6861 is 30 s ahead of the leader's"),
        (_other(ahead_s=-30.2), "the clock of head2:6861 is 30 s behind the leader's"),
    ],
)
def test_a_follower_that_could_take_over_but_differs_is_told(other: OtherHead, text: str) -> None:
    leads, ready, told = judge_heads(_heads(other), "1.0")

    assert (leads.health, ready.health) == (Health.OK, Health.OK)
    assert (told.health, told.text) == (Health.WARN, text)


def test_a_lease_that_cannot_be_renewed_and_an_absent_second_head_are_told() -> None:
    lease, alone = judge_heads(_heads(trouble="db1 does not answer"), "1.0")

    assert (lease.health, lease.text) == (Health.BAD, "no lease: db1 does not answer")
    assert (alone.health, alone.text) == (Health.WARN, "no other head can take over")
