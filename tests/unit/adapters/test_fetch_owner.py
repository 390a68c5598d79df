"""Scripts that root runs come from a folder that nobody but root may change, or with a digest that names them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steward.adapters.fetch.file import fetch_file
from steward.ports import Permanent
from tests.fakes.archives import budget, files, tar

EVE = 65533
TREE = {"on_create.sh": "one", "steps/10.sh": "two"}

Attack = Callable[[Path], object]
ATTACKS: dict[str, Attack] = {
    "anybody writes into the folder": lambda site: (site / "lc").chmod(0o777),
    "a group of users writes into a folder in it": lambda site: _group(site / "lc/steps", 0o775),
    "a script that all may write": lambda site: (site / "lc/steps/10.sh").chmod(0o666),
    "the folder on the way to it": lambda site: site.chmod(0o757),
}
AS_ROOT: dict[str, Attack] = {
    "a user's folder": lambda site: os.chown(site / "lc", EVE, 0),
    "a user's folder in it": lambda site: os.chown(site / "lc/steps", EVE, 0),
    "a user's script": lambda site: os.chown(site / "lc/on_create.sh", EVE, 0),
    "a user's folder on the way to it": lambda site: os.chown(site, EVE, 0),
}
if os.geteuid() == 0:
    ATTACKS.update(AS_ROOT)


def _group(path: Path, mode: int) -> None:
    os.chown(path, -1, next((group for group in os.getgroups() if group), EVE))
    path.chmod(mode)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / "site/lc" / name).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        (tmp_path / "site/lc" / name).write_text(text)
    return tmp_path / "site"


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_folder_that_another_may_change_is_refused(site: Path, tmp_path: Path, attack: str) -> None:
    ATTACKS[attack](site)
    with pytest.raises(Permanent, match="give it to root"):
        fetch_file((site / "lc").as_uri(), tmp_path / "out", budget())


@pytest.mark.parametrize("attack", ATTACKS)
def test_with_a_pinned_digest_it_is_taken_whoever_owns_it(site: Path, tmp_path: Path, attack: str) -> None:
    ATTACKS[attack](site)
    fetch_file((site / "lc").as_uri(), tmp_path / "out", budget(), pinned=True)
    assert files(tmp_path / "out") == TREE


def test_an_archive_that_others_may_write_is_refused(site: Path, tmp_path: Path) -> None:
    (site / "lc.tar").write_bytes(tar(("on_create.sh", b"one")))
    (site / "lc.tar").chmod(0o666)
    with pytest.raises(Permanent, match="can be written by others"):
        fetch_file((site / "lc.tar").as_uri(), tmp_path / "out", budget())


def test_a_link_in_a_folder_of_users_is_not_followed_to_roots_folder(site: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o777)
    (tmp_path / "home/lc").symlink_to(site / "lc")
    with pytest.raises(Permanent, match="can be written by others"):
        fetch_file((tmp_path / "home/lc").as_uri(), tmp_path / "out", budget())
