"""The agent's part of the settings file; it must mean what the head reads in it."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steward.agent.config import AgentConfig, ConfigError, load, parse
from steward.checks.known import limits_of
from steward.model.settings import Settings


def read(tables: dict[str, Any], **env: str) -> AgentConfig:
    return parse(tables, source="steward.toml", env=env)


def test_an_empty_file_means_the_same_to_the_agent_and_to_the_head() -> None:
    ours, theirs = AgentConfig(), Settings()
    assert (ours.cluster, ours.agent, ours.health) == (theirs.cluster, theirs.agent, theirs.health)
    assert ours.checks == limits_of(theirs.checks)


WRONG: tuple[dict[str, Any], ...] = (
    {"agent": {"hed": "x:1"}},
    {"agent": {"head": "x"}},
    {"agent": {"head": []}},
    {"agent": {"head": ["a:1", "a:1"]}},
    {"agent": {"head": ["a:1", 7]}},
    {"agent": {"check_interval_s": 0.1}},
    {"agent": {"check_interval_s": 3601}},
    {"agent": {"check_interval_s": True}},
    {"agent": {"check_interval_s": float("nan")}},
    {"agent": {"job_dir": "jobs"}},
    {"agent": {"instance_id_file": "id"}},
    {"agent": {"node_name": "n" * 254}},
    {"agent": {"restart_units": ["a", "a"]}},
    {"cluster": {"slurm_user": ""}},
    {"cluster": {"command_timeout_s": 19}},
    {"health": {"bad_samples": 2.5}},
    {"health": {"bad_samples": 0}},
)


@pytest.mark.parametrize("tables", WRONG, ids=str)
def test_what_the_head_refuses_in_the_tables_of_an_agent_the_agent_refuses_too(tables: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read(tables)
    with pytest.raises(ValidationError):
        Settings.model_validate_json(json.dumps(tables))


def test_values_are_read_with_their_types() -> None:
    config = read(
        {
            "agent": {"head": "h:1", "check_interval_s": 2, "kernel_log": "/tmp/log"},
            "checks": {"disk": {"paths": ["/a"], "full_percent": 95}, "site": {"x": {"mode": "drain"}}},
            "cluster": {"munge_socket": "/run/m"},
            "groups": [{"name": "a"}],
        }
    )
    assert config.heads == (("h", 1),)
    assert (config.agent.check_interval_s, config.agent.kernel_log) == (2.0, Path("/tmp/log"))
    assert config.checks.values == {"disk.paths": ("/a",), "disk.full_percent": 95}
    assert config.checks.modes == {"site.x": "drain"}
    assert config.cluster.munge_socket == Path("/run/m")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"agent": {"hed": "x:1"}}, "steward.toml: agent.hed: unknown key"),
        ({"checks": {"dsk": {}}}, "steward.toml: checks.dsk: there is no check `dsk`; did you mean disk?"),
        ({"agent": {"head": 5}}, "steward.toml: agent.head = 5: write HOST:PORT, or a list of them"),
        ({"agent": {"check_interval_s": "5"}}, 'agent.check_interval_s = "5": use a number'),
        ({"agent": {"check_interval_s": True}}, "agent.check_interval_s = true: use a number"),
        ({"agent": {"head": "h"}}, "write HOST:PORT"),
        ({"agent": {"head": "h:99999"}}, "write HOST:PORT"),
        ({"agent": 3}, "steward.toml: agent = 3: use a table"),
        ({"agent": {"restart_units": "a"}}, 'agent.restart_units = "a": use a list'),
        ({"agent": {"head": date(2026, 1, 1)}}, 'agent.head = "2026-01-01": write HOST:PORT'),
        ({"checks": {"disk": {"paths": "/"}}}, 'checks.disk.paths = "/": use a list of strings'),
        ({"checks": 3}, "steward.toml: checks = 3: use a table"),
    ],
)
def test_a_wrong_key_or_type_is_named_with_a_remedy(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tables)
    assert message in str(refused.value)


def test_slurm_conf_comes_from_the_file_then_from_the_environment() -> None:
    assert read({}, SLURM_CONF="/e").cluster.slurm_conf == Path("/e")
    assert read({"cluster": {"slurm_conf": "/f"}}, SLURM_CONF="/e").cluster.slurm_conf == Path("/f")


def test_the_node_name_takes_its_place_in_every_path() -> None:
    own = read({"agent": {"socket": "/run/agent-%n.sock", "state_dir": "/s/%n"}}).for_node("n3")
    assert (own.agent.socket, own.agent.state_dir) == (Path("/run/agent-n3.sock"), Path("/s/n3"))


def test_an_address_in_brackets_is_understood() -> None:
    assert read({"agent": {"head": "[::1]:6861"}}).heads == (("::1", 6861),)


def test_a_list_of_heads_is_understood_in_its_order() -> None:
    assert read({"agent": {"head": ["b:1", "[::1]:6861", "a:2"]}}).heads == (("b", 1), ("::1", 6861), ("a", 2))


@pytest.mark.parametrize("content", [None, "[agent", "\udcff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "steward.toml"
    if content is not None:
        path.write_text(content, errors="surrogateescape")
    with pytest.raises(ConfigError, match=r"steward.toml: cannot be read"):
        load(path, {})
