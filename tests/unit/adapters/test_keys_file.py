"""The file of access keys: private, or not used."""

import os
from pathlib import Path

import pytest

from steward.adapters.keys_file import KeysFile
from steward.ports import Permanent

SECRET = "a secret of twenty and more"
TEXT = f'[keys.AKIDPLATFORM]\nsecret = "{SECRET}"\nuser = "platform"\n'
US = frozenset({os.getuid()})


def written(path: Path, text: str = TEXT, mode: int = 0o600) -> Path:
    file = path / "keys.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


def refusal(file: Path, owners: frozenset[int] = US) -> str:
    with pytest.raises(Permanent) as refused:
        KeysFile(file, owners).key("AKIDPLATFORM")
    text = str(refused.value)
    assert "\n" not in text
    assert SECRET not in text
    return text


def test_a_key_is_found_by_its_id(tmp_path: Path) -> None:
    key = KeysFile(written(tmp_path), US).key("AKIDPLATFORM")
    assert key is not None
    assert (key.secret, key.user, key.read_only) == (SECRET, "platform", False)


def test_an_unknown_id_is_no_key(tmp_path: Path) -> None:
    assert KeysFile(written(tmp_path), US).key("AKIDOTHER") is None


def test_a_key_may_be_for_reading_only(tmp_path: Path) -> None:
    key = KeysFile(written(tmp_path, TEXT + "read_only = true\n"), US).key("AKIDPLATFORM")
    assert key is not None
    assert key.read_only


def test_a_secret_is_not_shown_with_its_key(tmp_path: Path) -> None:
    assert SECRET not in repr(KeysFile(written(tmp_path), US).key("AKIDPLATFORM"))


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    keys = KeysFile(written(tmp_path), US)
    assert keys.key("AKIDPLATFORM") is not None
    written(tmp_path, TEXT.replace("AKIDPLATFORM", "AKIDNEXT"))
    assert keys.key("AKIDPLATFORM") is None
    assert keys.key("AKIDNEXT") is not None


def test_a_file_that_goes_bad_leaves_no_keys_until_it_is_mended(tmp_path: Path) -> None:
    keys = KeysFile(file := written(tmp_path), US)
    assert keys.key("AKIDPLATFORM") is not None
    file.chmod(0o644)
    with pytest.raises(Permanent, match="chmod 0600"):
        keys.key("AKIDPLATFORM")
    file.chmod(0o600)
    assert keys.key("AKIDPLATFORM") is not None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    assert f"mode {mode:04o}" in refusal(written(tmp_path, mode=mode))


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    assert "give it to SlurmUser" in refusal(written(tmp_path), frozenset({os.getuid() + 1}))


def test_a_file_that_is_not_there_is_told_with_the_remedy(tmp_path: Path) -> None:
    assert "make it, owned by SlurmUser, with mode 0600" in refusal(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[keys", "not TOML"),
        ("[keys.AKIDPLATFORM]\nuser = 'x'", "keys.AKIDPLATFORM.secret: Field required"),
        (TEXT + "color = 'red'", "keys.AKIDPLATFORM.color: Extra inputs"),
        (TEXT.replace("platform", "a b"), "keys.AKIDPLATFORM.user"),
        (f"[keys.AKIDPLATFORM]\nsecret = ['{SECRET}']\nuser = 'x'", "keys.AKIDPLATFORM.secret"),
        ("[keys.AKIDPLATFORM]\nsecret = 'short'\nuser = 'x'", "at least 20 characters"),
        (TEXT.replace("AKIDPLATFORM", '"a/b"'), "keys.'a/b'"),
    ],
)
def test_a_wrong_file_is_told_in_one_line_without_its_secrets(tmp_path: Path, text: str, why: str) -> None:
    assert why in refusal(written(tmp_path, text))
