"""What `steward init` writes for a cluster, and what `steward config check` says of a file that does not fit it."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase
from steward.model.settings import Settings, parse
from steward.model.slurm_site import SlurmSite
from steward.workflows.first_settings import draft
from steward.workflows.site_settings import SHIM_HOLD_S, contradictions_with_slurm, logins_of

REPOSITORY = Path(__file__).parents[3]

_CONFIG = {"ClusterName": "ml", "SlurmUser": "slurm(64030)", "SlurmctldHost[0]": "head1(10.0.0.1)"}


def _node(name: str, gres: str = "", address: str = "") -> Node:
    return Node(name=NodeName(name), base=NodeBase.IDLE, gres=gres, address=address or f"10.0.1.{name[1:]}")


def _site(*nodes: Node, config: Mapping[str, str] = _CONFIG, plugstack: str = "", **partitions: str) -> SlurmSite:
    return SlurmSite(
        config=config,
        nodes={node.name: node for node in nodes},
        partitions={name: frozenset(map(NodeName, names.split())) for name, names in partitions.items()},
        plugstack=plugstack,
        logins=frozenset({"slurm"}),
    )


_MIXED = _site(
    _node("n1", "gpu:h100:8(S:0-1)"), _node("n2", "gpu:h100:8(S:0-1)"), _node("n3"), train="n1 n2", all="n1 n2 n3"
)


def _settings(text: str) -> Settings:
    head = '[agent]\nhead = "head1:6861"\n' if "[agent]" not in text else ""
    return parse(head + text, source="steward.toml", env={})


def _keys(text: str, site: SlurmSite = _MIXED) -> list[str]:
    return [problem.key for problem in contradictions_with_slurm(_settings(text), site)]


@pytest.mark.parametrize("provider", ["", "static", "power", "none"])
@pytest.mark.parametrize("act", [False, True])
def test_what_is_written_is_valid_and_fits_the_cluster_that_it_was_made_for(provider: str, act: bool) -> None:
    made = parse(draft(_MIXED, conf="/etc/slurm/slurm.conf", provider=provider, act=act).text, source="f", env={})
    assert contradictions_with_slurm(made, _MIXED) == ()
    assert made.desired().repair.act is act


def test_nodes_of_one_kind_are_a_group_with_the_name_of_their_partition() -> None:
    groups = tomllib.loads(draft(_MIXED, conf="").text)["groups"]
    assert [(each["name"], each["nodes"]) for each in groups] == [("train", "n[1-2]"), ("cpu", "n3")]


def test_no_number_of_gpus_is_written_that_would_hold_for_nodes_without_any() -> None:
    """The file is the same everywhere, also on nodes that come later: Slurm's Gres says what each one has."""
    alike = _site(_node("n1", "gpu:8"), _node("n2", "gpu:8"))
    for site in (alike, _MIXED):
        made = draft(site, conf="")
        assert "checks" not in tomllib.loads(made.text)
        assert any("from Gres" in guess for guess in made.guesses)


def test_a_cluster_that_powers_its_nodes_gets_the_provider_power_and_is_told_why() -> None:
    powered = {**_CONFIG, "ResumeProgram": "/sbin/up", "SuspendProgram": "/sbin/down"}
    made = draft(_site(_node("n1"), config=powered), conf="")
    assert tomllib.loads(made.text)["groups"][0]["provider"] == "power"
    assert any("ResumeProgram" in guess for guess in made.guesses)


def test_a_cluster_name_with_quotes_stays_one_text() -> None:
    odd = _site(_node("n1"), config={**_CONFIG, "ClusterName": 'a"b\\c'})
    assert tomllib.loads(draft(odd, conf="").text)["cluster"]["name"] == 'a"b\\c'


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("cluster.slurm_user", '[cluster]\nslurm_user = "slurmm"'),
        ("api.admins", '[api]\nadmins = ["nobody-here"]'),
        ("groups[0].nodes", '[[groups]]\nname = "a"\nnodes = "n[1-9]"\nprovider = "static"'),
        ("capacity.owned_partitions", '[capacity]\nowned_partitions = ["trian"]'),
        ("resume.default[0].partition", '[[resume.default]]\npartition = "trian"\nmode = "1"'),
        ("agent.head", '[agent]\nhead = "localhost:6861"'),
        ("agent.head", '[agent]\nhead = ["head1:6861", "localhost:6861"]'),
        ("agent.hold_head_absent_s", '[agent]\nhead = "head1:6861"\nhold_head_absent_s = 100'),
    ],
)
def test_what_slurm_does_not_bear_out_is_named_by_its_key(key: str, text: str) -> None:
    assert _keys(text) == [key]


def test_slurms_own_munged_is_asked_also_where_it_listens_elsewhere() -> None:
    """AuthInfo names its socket; without it the library's own is meant, or one that the site gave to Steward alone."""
    elsewhere = _site(_node("n1"), config={**_CONFIG, "AuthInfo": "cred_expire=300,socket=/run/munge-2/socket"})
    assert tomllib.loads(draft(elsewhere, conf="").text)["cluster"]["munge_socket"] == "/run/munge-2/socket"
    assert _keys("", elsewhere) == ["cluster.munge_socket"]
    assert _keys('[cluster]\nmunge_socket = "/run/munge-2/socket"', elsewhere) == []
    assert _keys('[cluster]\nmunge_socket = "/run/stewards"') == []


def test_a_slurm_without_munge_is_told_that_steward_needs_it() -> None:
    keys = {**_CONFIG, "AuthType": "auth/slurm", "AuthInfo": "socket=/run/slurm/sack.socket"}
    made = draft(_site(_node("n1"), config=keys), conf="")
    assert "munge_socket" not in tomllib.loads(made.text)["cluster"]
    assert any("Steward needs munged" in guess for guess in made.guesses)


def test_nodes_that_may_still_register_are_not_held_against_a_file() -> None:
    dynamic = _site(_node("n1"), config={**_CONFIG, "MaxNodeCount": "64"})
    assert _keys('[[groups]]\nname = "a"\nnodes = "d[1-9]"\nprovider = "static"', dynamic) == []


def test_the_shims_own_hold_is_known_and_ends_before_slurm_takes_the_script_for_a_hung_one() -> None:
    found = re.search(r"CONFIG_HOLD_S\s+(\d+)", (REPOSITORY / "spank" / "config.h").read_text())
    assert found is not None
    assert int(found[1]) == SHIM_HOLD_S < 30 + 60  # Slurm's KillWait and UnkillableStepTimeout, by default


def test_the_hold_of_plugstack_conf_bounds_how_long_a_job_waits_for_the_head() -> None:
    longer = _site(_node("n1"), plugstack="# hold=5\noptional steward.so socket=/run/x hold=200\n")
    assert _keys('[agent]\nhead = "head1:6861"\nhold_head_absent_s = 100', longer) == []


def test_a_cluster_on_one_machine_may_say_localhost() -> None:
    assert _keys('[agent]\nhead = "localhost:6861"', _site(_node("n1", address="127.0.0.1"))) == []


def test_every_login_that_the_file_names_is_looked_up() -> None:
    assert logins_of(_settings('[api]\nadmins = ["eve"]')) == ("slurm", "eve")


@pytest.mark.parametrize("act", [False, True])
def test_a_new_file_names_all_three_modes_of_repair(act: bool) -> None:
    text = draft(_MIXED, conf="", act=act).text
    assert all(f'"{mode}"' in text for mode in ("report", "ask", "act"))
