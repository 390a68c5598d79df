"""`steward config`: the file that is meant is the one that is looked at."""

import os
from pathlib import Path
from pwd import getpwuid

import pytest
from click.testing import CliRunner

from steward.cli import main


@pytest.mark.parametrize("words", [("--config", "FILE", "config", "check"), ("config", "check", "--config", "FILE")])
def test_the_option_may_stand_before_the_command_or_behind_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "new.toml"
    file.write_text("[repair]\nmodus = 1\n")
    told = CliRunner().invoke(main, [str(file) if word == "FILE" else word for word in words])
    assert told.exit_code == 1
    assert "repair.modus" in told.output


def test_a_file_that_is_not_there_is_told_in_words_with_what_writes_one(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--config", str(tmp_path / "none.toml"), "config", "check"])
    assert done.exit_code == 1
    assert "none.toml: cannot be read (No such file or directory): `steward init` writes a first one" in done.output
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(main, ["--config", str(tmp_path / "binary.toml"), "config", "check"])
    assert "cannot be read (it is not UTF-8 text)" in done.output


def test_init_without_slurm_says_where_to_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none.conf"))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["init", "--print"])
    assert done.exit_code == 1
    assert "none.conf is not there; run this on the controller, where `scontrol ping` must say UP" in done.output
    (tmp_path / "none.conf").touch()
    done = CliRunner().invoke(main, ["init", "--print"])
    assert done.exit_code == 1
    assert "Slurm does not answer here; run this on the controller, where `scontrol ping` must say UP" in done.output
    assert "cannot start `scontrol`: No such file or directory" in done.output


CHANNEL = '[[notify]]\nname = "ops"\nkind = "webhook"\n'


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (f'{CHANNEL}url = "https://a.example"\ntemplate = "slak"\n', ["--offline"], "notify[0].template"),
        (f'{CHANNEL}url_file = "/none/url"\n', [], "url_file /none/url: No such file or directory"),
        ('[api]\nkeys_file = "/none/keys"\n', [], "access keys /none/keys: No such file or directory"),
        (
            '[[notify]]\nname = "own"\nkind = "command"\ncommand = ["/none/tell", "-x"]\n',
            [],
            'notify[0].command = "/none/tell": use the path of a program that is on this machine and may be executed',
        ),
        ('[capacity]\nalarms = ["/etc/passwd"]\n', [], 'capacity.alarms = "/etc/passwd": use the path of a program'),
        ('[head]\ndatabase = "nonsense"\n', [], "the database's address is not a SQLAlchemy URL: write DIALECT://"),
        ('[head]\nstate_dir = "/etc/passwd"\n', [], 'head.state_dir = "/etc/passwd": use the path of a folder'),
        (
            'munge_socket = "/none/sock"\n',
            [],
            'cluster.munge_socket = "/none/sock": use the socket of a munged that runs',
        ),
        ('slurm_conf = "/none/slurm.conf"\n', [], 'cluster.slurm_conf = "/none/slurm.conf": use the path of Slurm\'s'),
        ('[provider.static]\nreboot = ["/etc", "%n"]\n', [], 'provider.static.reboot = "/etc": use the path'),
    ],
)
def test_a_file_with_which_the_head_would_not_start_is_not_called_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: list[str], said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # without Slurm
    file = tmp_path / "steward.toml"
    file.write_text(f'[cluster]\nslurm_user = "{getpwuid(os.geteuid()).pw_name}"\n{text}')
    done = CliRunner().invoke(main, ["config", "check", "--config", str(file), *options])
    assert done.exit_code == 1
    assert said in done.output
