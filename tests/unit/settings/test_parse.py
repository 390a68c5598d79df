"""The settings file: what it says, and what it refuses."""

import pytest

from steward.model.desired import Desired
from steward.model.ids import NodeName
from steward.model.instance import SPARES
from steward.model.node_names import expand_nodes
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_policy import ResumePolicy
from steward.model.setting_types import RepairMode
from steward.model.settings import Settings, SettingsError, parse, split_host_port


def settings(text: str = "", **env: str) -> Settings:
    return parse(text, source="steward.toml", env=env)


def refusal(text: str) -> str:
    with pytest.raises(SettingsError) as refused:
        settings(text)
    return str(refused.value)


def test_an_empty_file_means_the_defaults_of_the_decisions() -> None:
    wanted = settings().desired()
    assert wanted.resume == ResumePolicy()
    assert wanted.repair == RepairPolicy(mode=RepairMode.REPORT)
    assert wanted.slots == {}


def test_an_unknown_key_is_named_with_its_value_and_the_key_that_was_meant() -> None:
    assert refusal("[repair]\nsetle_s = 1") == "steward.toml: repair.setle_s = 1: unknown key; did you mean settle_s?"


def test_an_unknown_table_is_refused() -> None:
    assert "unknown key; did you mean repair?" in refusal("[repiar]")


def test_an_unknown_key_in_a_group_is_named_with_the_groups_number() -> None:
    text = '[[groups]]\nname="a"\nnodes="n1"\nprovider="static"\ncolour="red"'
    assert 'groups[0].colour = "red": unknown key; remove it, or use one of: hot_spares, name, nodes' in refusal(text)


def test_a_number_out_of_range_is_named_with_its_range() -> None:
    assert "repair.settle_s = -1: use a number from 0 to 20" in refusal("[repair]\nsettle_s = -1")


@pytest.mark.parametrize("value", ['"5"', "true", "5.5", "[5]"])
def test_a_count_must_be_a_whole_number(value: str) -> None:
    assert "resume.max_resumes" in refusal(f"[resume]\nmax_resumes = {value}")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_time_must_be_finite(value: str) -> None:
    assert "head.sweep_s" in refusal(f"[head]\nsweep_s = {value}")


def test_a_word_out_of_a_set_is_refused_with_the_set() -> None:
    assert 'repair.mode = "acts": use "act", "ask" or "report"' in refusal('[repair]\nmode = "acts"')


@pytest.mark.parametrize("value", ["head1", "head1:", "head1:0", "head1:65536", "a b:1", ":6861"])
def test_an_address_needs_host_and_port(value: str) -> None:
    assert "agent.head" in refusal(f'[agent]\nhead = "{value}"')


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[]", "agent.head = []: write HOST:PORT, or a list of them"),
        ("7", "agent.head = 7: write HOST:PORT, or a list of them"),
        ('["head1:6861", 7]', "write HOST:PORT, or a list of them"),
        ('["head1:6861", "head2"]', "'head2' is no address: write HOST:PORT with a port from 1 to 65535"),
        ('["head1:6861", "head1:6861"]', "'head1:6861' is there twice; write each once"),
        ('["a:1", "b:1", "c:1", "d:1", "e:1"]', "there are 5 addresses; write one for each head, at most 4"),
    ],
)
def test_a_wrong_list_of_heads_is_told_with_what_to_write(value: str, told: str) -> None:
    assert told in refusal(f"[agent]\nhead = {value}")


def test_one_head_may_be_written_without_a_list() -> None:
    alone = parse('[agent]\nhead = "head1:6861"', source="test", env={})
    assert alone == parse('[agent]\nhead = ["head1:6861"]', source="test", env={})
    assert alone.agent.head == ("head1:6861",)


def test_a_word_of_another_form_is_refused_with_an_example() -> None:
    told = refusal('[resume]\ncheckpoint_signal = "SIGUSR1x"')
    assert 'resume.checkpoint_signal = "SIGUSR1x": use a value such as "USR1" (its form is ' in told


def test_a_table_in_place_of_a_list_and_a_list_in_place_of_a_table_are_told_how_the_file_writes_them() -> None:
    assert refusal('[groups]\nname = "a"').endswith('{"name": "a"}: use a list of tables, [[groups]] for each')
    assert refusal('[[repair]]\nmode = "act"').endswith('[{"mode": "act"}]: use one table, [repair]')


def test_every_problem_is_told_at_once() -> None:
    assert len(refusal("[repair]\nsettle_s = -1\nretry_s = 0\nmood = 1").splitlines()) == 3


def test_text_that_is_not_toml_is_refused_with_its_place() -> None:
    assert "not TOML" in refusal("[head")
    assert "line 1" in refusal("head = ]")


def test_slurm_conf_comes_from_the_environment_unless_the_file_says_it() -> None:
    assert str(settings(SLURM_CONF="/a").cluster.slurm_conf) == "/a"
    assert str(settings('[cluster]\nslurm_conf="/b"', SLURM_CONF="/a").cluster.slurm_conf) == "/b"


def test_groups_become_slots_by_node_name() -> None:
    wanted = settings('[[groups]]\nname="a"\nnodes="n[1-2],x"\nprovider="static"').desired()
    assert {node: slot.group for node, slot in wanted.slots.items()} == {"n1": "a", "n2": "a", "x": "a"}


def test_spares_are_slots_of_their_own_and_machines_of_static_groups_are_fixed() -> None:
    text = """[[groups]]\nname="a"\nnodes="n1"\nprovider="static"\n[[groups]]\nname="b"\nnodes="n2"\nprovider="local"
[provider.local]\ndir="/tmp"\n[provider.static]\nspares="s[1-2]"\nreboot=["/sbin/power", "cycle", "%n"]"""
    wanted = settings(text).desired()
    assert wanted.spares == {"s1", "s2"}
    assert {node: slot.fixed for node, slot in wanted.slots.items()} == {
        "n1": True,
        "n2": False,
        "s1": True,
        "s2": True,
    }
    assert wanted.slots[NodeName("s1")].group == SPARES


@pytest.mark.parametrize(
    ("value", "remedy"),
    [('["/sbin/power", "cycle"]', "write %n"), ('["power", "%n"]', "write it in full"), ('["%n"]', "write it in full")],
)
def test_a_command_without_a_node_or_a_path_is_refused(value: str, remedy: str) -> None:
    for key in ("reboot", "status"):
        refused = refusal(f"[provider.static]\n{key} = {value}")
        assert f"provider.static.{key}" in refused
        assert remedy in refused


def test_hours_and_percents_become_seconds_and_fractions() -> None:
    text = "[repair]\nnode_repairs_window_h = 2\n\nconcurrent_percent = 10\nrelease_deadline_h = 1"
    wanted: Desired = settings(text).desired()
    assert wanted.repair.node_repairs_window_s == 7200
    assert wanted.repair.concurrent_fraction == pytest.approx(0.1)
    assert wanted.repair.release_deadline_s == 3600


def test_a_new_head_only_reports_until_the_site_says_act() -> None:
    assert settings("").desired().repair.act is False
    assert settings('[repair]\nmode = "act"').desired().repair.act is True


def test_report_mode_acts_on_no_node() -> None:
    assert settings('[repair]\nmode = "report"').desired().repair.act is False


def test_a_host_list_keeps_its_zeros() -> None:
    assert expand_nodes("gpu[008-010]") == (NodeName("gpu008"), NodeName("gpu009"), NodeName("gpu010"))


def test_digits_before_a_bracket_are_read_as_slurm_reads_them() -> None:
    assert expand_nodes("b1[9-11]") == (NodeName("b19"), NodeName("b110"), NodeName("b111"))
    assert expand_nodes("gpu0[8-9]") == (NodeName("gpu08"), NodeName("gpu09"))


@pytest.mark.parametrize("text", ["n[1-", "@all", "n[1-900000]", "n[3-1]", "n1]", "n1;rm", "$(id)"])
def test_what_is_not_a_host_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        expand_nodes(text)


def test_an_address_may_be_ipv6() -> None:
    assert split_host_port("[::1]:6861") == ("::1", 6861)
