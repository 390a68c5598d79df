"""Small files of a node: who it is, and what the agent keeps."""

import socket
from pathlib import Path

import pytest

from steward.adapters.files import read_json, write_json
from steward.adapters.node.identity import incarnation, node_name
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId
from steward.ports import Permanent, Retryable


def test_a_named_node_keeps_its_name_and_another_has_its_hosts_short_one() -> None:
    assert node_name("n7") == "n7"
    assert node_name("") == socket.gethostname().split(".")[0]


def test_instance_and_boot_come_from_the_files_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "instance").write_text("i-0abc\n")
    (tmp_path / "boot").write_text("b-1\n")
    who = incarnation(tmp_path / "instance", tmp_path / "boot")
    assert who == Incarnation(instance=InstanceId("i-0abc"), boot=BootId("b-1"))


def test_without_a_named_file_the_first_usual_one_that_is_there_counts(tmp_path: Path) -> None:
    (tmp_path / "firmware").write_text("u-1\n")
    (tmp_path / "machine-id").write_text("m-1\n")
    usual = tuple(tmp_path / name for name in ("cloud", "firmware", "machine-id"))
    who = incarnation(None, Path("/proc/sys/kernel/random/boot_id"), usual)
    assert who.instance == "u-1"
    assert len(who.boot) == 36


def test_a_machine_without_any_usual_file_is_told_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match=r"agent\.instance_id_file"):
        incarnation(None, Path("/proc/sys/kernel/random/boot_id"), (tmp_path / "none",))


@pytest.mark.parametrize("missing", ["instance", "boot"])
def test_an_id_that_is_not_there_is_named_with_the_setting_to_change(tmp_path: Path, missing: str) -> None:
    for name in {"instance", "boot"} - {missing}:
        (tmp_path / name).write_text("x")
    with pytest.raises(Permanent, match=f"agent.{missing}_id_file"):
        incarnation(tmp_path / "instance", tmp_path / "boot")


def test_hostile_bytes_in_an_id_are_made_printable(tmp_path: Path) -> None:
    (tmp_path / "instance").write_bytes(b"i-\x1b[31m\xff" + b"x" * 500)
    (tmp_path / "boot").write_text("b")
    instance = incarnation(tmp_path / "instance", tmp_path / "boot").instance
    assert instance.isprintable()
    assert len(instance) <= 128


def test_what_was_written_is_read_back_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    write_json(path, {"a": [1]})
    write_json(path, {"a": [2]})
    assert read_json(path) == {"a": [2]}
    assert [file.name for file in path.parent.iterdir()] == ["state.json"]


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "state.json"
    if content is not None:
        path.write_bytes(content)
    assert read_json(path) is None


def test_a_state_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Retryable, match="cannot write"):
        write_json(tmp_path / "file" / "state.json", {})
