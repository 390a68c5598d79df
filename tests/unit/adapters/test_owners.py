"""Settings that others may change are refused wherever they are read: they name what root does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from steward.adapters import settings_file
from steward.adapters.owners import settings_problem, why_unsafe
from steward.agent import config as agent_config
from steward.agent.config import ConfigError
from steward.cli import main
from steward.model.settings import SettingsError

LOADERS: dict[str, Callable[[Path], object]] = {
    "head": lambda path: settings_file.load(path, {}),
    "agent": lambda path: agent_config.load(path, {}),
}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    folder = tmp_path / "steward"
    folder.mkdir(mode=0o755)
    (file := folder / "steward.toml").write_text('[cluster]\nname = "c"\n')
    file.chmod(0o644)
    return file


def world_writable(file: Path) -> None:
    file.chmod(0o666)


def in_an_open_folder(file: Path) -> None:
    file.parent.chmod(0o777)


def of_another_group(file: Path) -> None:
    os.chown(file, -1, 4242)
    file.chmod(0o664)


def of_another_user(file: Path) -> None:
    os.chown(file, 4242, -1)


def linked_from_an_open_place(file: Path) -> None:
    """What counts is where the file really lies."""
    place = file.parent / "open"
    place.mkdir()
    place.chmod(0o777)
    file.rename(place / "real.toml")
    file.symlink_to(place / "real.toml")


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    "open_up", [world_writable, in_an_open_folder, of_another_group, of_another_user, linked_from_an_open_place]
)
def test_settings_that_others_may_change_are_refused_by_every_reader(
    settings: Path, loader: str, open_up: Callable[[Path], None]
) -> None:
    if os.geteuid() and open_up in (of_another_group, of_another_user):
        pytest.skip("only root gives files away")
    LOADERS[loader](settings)
    open_up(settings)

    with pytest.raises((SettingsError, ConfigError), match=r"steward\.toml: its .*\(ch(mod|own) .*root"):
        LOADERS[loader](settings)

    checked = CliRunner().invoke(main, ["config", "check", "--offline", "--config", str(settings)])
    assert checked.exit_code == 1
    assert "names every folder and command" in checked.output
    assert settings_problem(settings)


def test_a_file_in_a_sticky_folder_is_its_owners(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert why_unsafe(tmp_path.stat(), "directory") == ""


@pytest.mark.parametrize("loader", LOADERS)
def test_a_byte_order_mark_says_nothing(settings: Path, loader: str) -> None:
    settings.write_bytes(b"\xef\xbb\xbf" + settings.read_bytes())
    LOADERS[loader](settings)
