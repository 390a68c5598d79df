"""No secret of the settings is in what `steward config show` prints."""

from pathlib import Path

from click.testing import CliRunner

from steward.cli import main

CANARY = "CANARY-do-not-show-1"


def test_a_webhooks_address_is_not_shown_with_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    hook = f'url = "https://hooks.example.org/{CANARY}"\nsecret = "{CANARY}"\n'
    file.write_text(f'[[notify]]\nname = "ops"\nkind = "webhook"\n{hook}')
    told = CliRunner().invoke(main, ["config", "show", "--config", str(file)])
    assert told.exit_code == 0, told.output
    assert '"ops"' in told.output
    assert CANARY not in told.output
