"""`steward install` and `steward uninstall` by an ssh that only remembers what it was given."""

import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steward.cli import main
from steward.cli.install import silent_agents
from tests.builders.picture import a_cluster, n
from tests.fakes.api_bench import an_api

_NO_HEAD = "http://127.0.0.1:9"
SETTINGS = '[agent]\nhead = "head1:6861"\n'
_SSH = """#!/bin/sh
# ssh OPTIONS -- HOST COMMAND
while [ "$1" != -- ]; do shift; done
host={hosts}/$2
[ -d "$host" ] || {{ echo "ssh: connect to host $2 port 22: No route to host" >&2; exit 255; }}
printf '%s\\n' "$3" >> "$host/commands"
case $3 in
    *"id -u"*) cat "$host/facts" ;;
    *) cat > "$host/given"; cat "$host/printed"; cat "$host/said" >&2; exit "$(cat "$host/status")" ;;
esac
"""


@dataclass
class Site:
    """`hosts` has a folder for each host that answers."""

    root: Path

    def host(
        self,
        name: str,
        *,
        facts: str = "0\ndeb\nslurm-wlm 22.05.8\n",
        said: str = "",
        printed: str = "",
        status: int = 0,
    ) -> None:
        folder = self.root / "hosts" / name
        folder.mkdir(parents=True)
        for file, text in (("facts", facts), ("said", said), ("printed", printed), ("status", str(status))):
            (folder / file).write_text(text)

    def given(self, host: str) -> tarfile.TarFile:
        return tarfile.open(fileobj=io.BytesIO((self.root / "hosts" / host / "given").read_bytes()))

    def was_touched(self, host: str) -> bool:
        return (self.root / "hosts" / host / "given").exists()

    def scontrol(self, script: str) -> None:
        """What `scontrol show aliases HOST` does."""
        (self.root / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
        (self.root / "scontrol").chmod(0o755)

    def steward(self, *words: str, url: str = _NO_HEAD) -> Result:
        return CliRunner().invoke(main, ["--url", url, *words, "--ssh", str(self.root / "ssh")])

    def install(self, hosts: str, *words: str, url: str = _NO_HEAD) -> Result:
        return self.steward("install", "--hosts", hosts, "--packages", str(self.root / "packages"), *words, url=url)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    (tmp_path / "packages").mkdir()
    for name in ("common", "client", "agent", "head", "shim-22.05"):
        (tmp_path / "packages" / f"steward-{name}_0.1.0-1_amd64.deb").write_text(name)
    (tmp_path / "steward.toml").write_text(SETTINGS)
    (tmp_path / "steward.toml").chmod(0o640)
    (tmp_path / "ssh").write_text(_SSH.format(hosts=tmp_path / "hosts"))
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("STEWARD_CONFIG", str(tmp_path / "steward.toml"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    made = Site(tmp_path)
    made.scontrol("exit 1")
    return made


def test_each_host_gets_its_packages_and_the_settings_with_their_mode(site: Site) -> None:
    for name in ("n1", "n2", "n3"):
        site.host(name)
    done = site.install("n[1-3]")
    assert done.exit_code == 0, done.output
    assert "[3/3]" in done.output
    assert "no head answers" in done.output
    for name in ("n1", "n2", "n3"):
        tar = site.given(name)
        packages = [f"steward-{each}_0.1.0-1_amd64.deb" for each in ("common", "agent", "shim-22.05")]
        assert tar.getnames() == [*packages, "is-deb", "steward.toml"]
        settings = tar.extractfile("steward.toml")
        assert settings is not None
        assert settings.read().decode() == SETTINGS
        assert tar.getmember("steward.toml").mode == 0o640


def test_what_a_host_has_to_say_is_told(site: Site) -> None:
    """Where slurmd has its files from slurmctld, no line in a file of that host names the shim."""
    note = "there is no /etc/slurm/slurm.conf here (configless?)"
    site.host("n1", printed=f"{note}\n")
    assert f"n1: installed, 0 s; {note}" in site.install("n1").output


def test_a_login_host_gets_the_command_and_no_agent(site: Site) -> None:
    site.host("login1")
    assert site.install("login1", "--role", "login").exit_code == 0
    assert "steward-client_0.1.0-1_amd64.deb" in site.given("login1").getnames()
    assert "steward-agent_0.1.0-1_amd64.deb" not in site.given("login1").getnames()


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ("0\ndeb\nslurm-wlm 24.11.5\n", "Slurm 24.11 is there, the folder has a shim for 22.05"),
        ("1000\ndeb\nslurm-wlm 22.05.8\n", "not root there"),
        ("Welcome to n1!\n0\ndeb\n", "something other than its own output: 'Welcome to n1!"),
    ],
)
def test_an_odd_first_host_is_told_of_and_nothing_is_installed_anywhere(site: Site, facts: str, text: str) -> None:
    site.host("n1", facts=facts)
    site.host("n2")
    done = site.install("n[1-2]")
    assert done.exit_code == 1
    assert text in done.output
    assert "go on with --hosts n[1-2]" in done.output
    assert not site.was_touched("n1")
    assert not site.was_touched("n2")


def test_what_a_host_said_is_told_where_it_fails_and_the_rest_is_named(site: Site) -> None:
    site.host("n1")
    site.host("n2", said="E: Unable to correct problems, you have held broken packages.\n", status=100)
    site.host("n3")
    done = site.install("n[1-3]", "--at-once", "1")
    assert done.exit_code == 1
    assert "n2: not installed: E: Unable to correct problems" in done.output
    assert "1 host installed" in done.output
    assert "--hosts n[2-3]" in done.output
    assert not site.was_touched("n3")


def test_a_host_that_is_not_reached_is_odd(site: Site) -> None:
    done = site.install("n1")
    assert (done.exit_code, "No route to host" in done.output) == (1, True)
    assert f"`{site.root}/ssh n1 true` must work from here, without a question" in done.output


def test_without_settings_nothing_is_begun(site: Site) -> None:
    site.host("n1")
    (site.root / "steward.toml").unlink()
    done = site.install("n1")
    assert (done.exit_code, "`steward init` writes it" in done.output) == (1, True)
    assert not site.was_touched("n1")


def test_agents_that_do_not_come_are_named_and_so_are_nodes_that_slurm_does_not_have() -> None:
    with an_api() as api:
        api.show(a_cluster(3).lost("n2"))
        assert silent_agents(api.client(), map(n, ("n1", "n3")), 0.0) == []
        assert silent_agents(api.client(), map(n, ("n1", "n2", "login1")), 0.0) == ["n2", "login1"]


def test_hosts_may_have_other_names_than_their_nodes(site: Site) -> None:
    for name in ("cn1.example.org", "cn3.example.org"):
        site.host(name)
    site.scontrol('case $3 in cn*) echo "$3" | sed "s/^c//; s/[.].*//" ;; esac')
    with an_api() as api:
        api.show(a_cluster(3))
        done = site.install("cn1.example.org,cn3.example.org", url=api.url)
    assert (done.exit_code, done.output.splitlines()[-1]) == (
        0,
        "every agent of cn1.example.org,cn3.example.org is connected",
    )


def test_a_host_with_several_slurmds_is_refused_before_anything_is_installed(site: Site) -> None:
    site.host("many")
    site.scontrol("echo n1 n2")
    done = site.install("many")
    assert (done.exit_code, "slurm.conf has several nodes on many" in done.output) == (1, True)
    assert not site.was_touched("many")


def test_with_sudo_the_script_runs_as_root(site: Site) -> None:
    site.host("n1")
    assert site.install("n1", "--sudo").exit_code == 0
    commands = (site.root / "hosts/n1/commands").read_text()
    assert commands.count("sudo -n sh -c ") == 2


def test_uninstall_asks_first_and_says_which_hosts(site: Site) -> None:
    site.host("n1")
    done = site.steward("uninstall", "--hosts", "n1")
    assert (done.exit_code, "from n1?" in done.output, site.was_touched("n1")) == (1, True, False)
    done = site.steward("uninstall", "--hosts", "n1", "--yes")
    assert (done.exit_code, "n1: removed" in done.output, site.was_touched("n1")) == (0, True, True)
    assert "purge" in (site.root / "hosts/n1/commands").read_text()


def test_uninstall_of_nothing_is_refused(site: Site) -> None:
    assert site.steward("uninstall", "--yes").exit_code == 2


def test_a_list_that_is_none_is_refused(site: Site) -> None:
    assert site.install("n[1-").exit_code == 2
