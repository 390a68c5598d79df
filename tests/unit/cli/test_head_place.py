"""Where the head is: read from the settings file without the settings' types."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from steward.cli.context import Context, HeadPlace, context_for, local_place, place_in
from steward.client import HeadError
from steward.model.settings import parse
from steward_bed.bed import BedSpec
from steward_bed.layout import Layout
from steward_bed.steward_toml import local_toml
from tests.fakes.stranger import UID, a_strangers_port

WITH_TLS = """
[cluster]
name = "alps"
munge_socket = "/run/other.sock"
[head]
http = "0.0.0.0:7000"
[api]
tls_certificate = "/etc/steward/head.pem"
tls_key = "/etc/steward/head.key"
tls_ca = "/etc/steward/ca.pem"
"""


@pytest.mark.parametrize("text", ["", WITH_TLS, "bed"])
def test_it_is_what_the_settings_say(text: str, tmp_path: Path) -> None:
    if text == "bed":
        text = local_toml(Layout(root=tmp_path), BedSpec(dir=tmp_path), listen=7000, http=7001, users=7002)
    file = tmp_path / "steward.toml"
    file.write_text(text)
    settings = parse(text, source="test", env={})
    assert local_place(file) == HeadPlace(
        http=settings.head.http,
        has_certificate=settings.api.tls_certificate is not None,
        ca=str(settings.api.tls_ca or ""),
        cluster=settings.cluster.name,
        slurm_user=settings.cluster.slurm_user,
        munge_socket=str(settings.cluster.munge_socket or ""),
        users_http=settings.head.users_http or "",
        heads=settings.agent.head,
    )


@pytest.mark.parametrize(
    ("users", "head", "url"),
    [
        ("0.0.0.0:6862", "203.0.113.7:6861", "http://203.0.113.7:6862"),
        ("[::]:6862", "203.0.113.7:6861", "http://203.0.113.7:6862"),
        ("203.0.113.8:6862", "203.0.113.7:6861", "http://203.0.113.8:6862"),
        ("0.0.0.0:6862", "no-such-host.invalid:6861", "http://no-such-host.invalid:6862"),
        ("0.0.0.0:6862", "localhost:6861", "http://127.0.0.1:6860"),
        ("", "203.0.113.7:6861", "http://127.0.0.1:6860"),
    ],
)
def test_a_login_host_asks_the_controller_where_it_serves_users(users: str, head: str, url: str) -> None:
    assert HeadPlace(users_http=users, heads=(head,)).url == url


def test_a_login_host_uses_tls_where_the_head_has_a_certificate() -> None:
    place = HeadPlace(users_http="0.0.0.0:6862", heads=("203.0.113.7:6861",), has_certificate=True)
    assert place.url == "https://203.0.113.7:6862"


HEADS = ("127.0.0.1:6861", "203.0.113.7:6861")
AWAY = ("203.0.113.7:6861", "203.0.113.8:6861")


@pytest.mark.parametrize(
    ("place", "url"),
    [
        (HeadPlace(heads=AWAY, users_http="0.0.0.0:6862"), "http://203.0.113.7:6862,http://203.0.113.8:6862"),
        (HeadPlace(heads=AWAY, users_http="203.0.113.9:6862"), "http://203.0.113.9:6862"),
        (HeadPlace(heads=AWAY), "http://127.0.0.1:6860"),
        (HeadPlace(heads=HEADS, users_http="0.0.0.0:6862"), "http://127.0.0.1:6860"),
        (HeadPlace(heads=HEADS, http="0.0.0.0:6860"), "http://127.0.0.1:6860,http://203.0.113.7:6860"),
        (HeadPlace(heads=HEADS[::-1], http="0.0.0.0:6860"), "http://127.0.0.1:6860,http://203.0.113.7:6860"),
    ],
)
def test_with_two_heads_both_are_named_where_both_are_reached(place: HeadPlace, url: str) -> None:
    assert place.url == url


def test_where_the_other_head_listens_on_its_own_machine_only_a_person_is_told_to_go_there() -> None:
    assert HeadPlace(heads=HEADS).hint() == "or run this on 203.0.113.7, where the other head is"
    assert HeadPlace(heads=HEADS, http="0.0.0.0:6860").hint() == ""
    assert HeadPlace(heads=AWAY).hint() == HeadPlace().hint() == ""


def test_a_head_that_listens_everywhere_is_called_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STEWARD_URL", raising=False)
    file = tmp_path / "steward.toml"
    file.write_text(WITH_TLS)
    made = context_for(None, file, as_json=False)
    assert (made.url, made.cluster) == ("https://127.0.0.1:7000", "alps")


def test_a_proof_for_a_head_elsewhere_names_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text(WITH_TLS)
    assert context_for("http://other:6860", file, as_json=False).cluster == ""


def test_without_a_file_it_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEWARD_CONFIG", str(tmp_path / "none.toml"))
    assert local_place(None) == HeadPlace()


@pytest.mark.parametrize("text", ["no toml", "[head]\nhttp = 7", "head = 7", "[agent]\nhead = []", "agent = 7"])
def test_a_wrong_file_is_an_error_with_its_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text(text)
    with pytest.raises(click.ClickException, match=r"steward\.toml.*config check"):
        local_place(file)


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="cannot be read"):
        local_place(tmp_path / "none.toml")


def test_what_is_not_said_is_empty() -> None:
    assert place_in({"api": {}}) == HeadPlace()


def test_a_look_at_the_head_imports_neither_the_settings_nor_the_ports() -> None:
    """They take ten times as long as the look itself."""
    heavy = {"pydantic", "requests", "steward.ports", "steward.model.action", "steward.model.desired"}
    code = f"import sys, steward.cli, steward.cli.look; print(sorted({heavy} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's port needs root")
def test_who_took_the_heads_port_while_no_head_runs_gets_no_question_and_no_proof() -> None:
    with a_strangers_port() as port:
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(HeadError, match=f"belongs to uid {UID}, and not to stewardd"):
            Context(url=url, as_json=False, munge_socket="", slurm_user="slurm").client()
        Context(url=url, as_json=False, munge_socket="").client()  # who names an address knows whose it is
    Context(url=url, as_json=False, munge_socket="", slurm_user="slurm").client()
