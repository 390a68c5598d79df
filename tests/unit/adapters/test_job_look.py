"""What a job tells in its folder is read without trust."""

import os
import sys
from pathlib import Path

import pytest

from steward.adapters import process
from steward.adapters.node.job_look import ProgressLook, ReportedProgress, has_room, look, names, parse, text_of

ME = os.geteuid()


def told(folder: Path, content: bytes) -> ReportedProgress | None:
    (folder / "progress").write_bytes(content)
    os.utime(folder / "progress", (1000, 1000))
    return look(folder, "progress", ME, None).told


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"step": 12, "checkpoint": "/c/10", "checkpoint_step": 10}\n', (12, "/c/10", 10)),
        (b"12\n", (12, "", None)),
        (b"12", (12, "", None)),
        (b'{"step": 12.0, "more": [1]}\nsecond line', (12, "", None)),
        (b'{"checkpoint": "/c"}', (None, "/c", None)),
        (b'{"step": -1, "checkpoint": "/c"}', (None, "/c", None)),
        (b'{"step": true, "checkpoint": "relative", "checkpoint_step": 3}', (None, "", 3)),
        (b'{"step": 1, "checkpoint": "/with\\nnewline"}', (1, "", None)),
    ],
)
def test_a_line_of_json_or_a_number_is_understood(tmp_path: Path, content: bytes, expected: object) -> None:
    found = told(tmp_path, content)
    assert found is not None
    assert (found.step, found.checkpoint, found.checkpoint_step) == expected
    assert found.changed == 1000


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\n", b"{", b"[1]", b"null", b'"12"', b"NaN", b"1e999", b"-5", b"{}", b"\xff\xfe", b"9" * 30),
        *(b"[" * 4000, b'{"a":' * 800, b"1" * 5000, b" " * 4096 + b"1"),
    ],
)
def test_what_makes_no_sense_tells_nothing(tmp_path: Path, content: bytes) -> None:
    assert told(tmp_path, content) is None


def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("1")
    first = look(tmp_path, "progress", ME, None)
    assert first.told is not None
    assert look(tmp_path, "progress", ME, first.stamp) == ProgressLook(stamp=first.stamp, told=None)


def test_a_file_that_was_seen_half_written_is_read_again_whatever_its_time(tmp_path: Path) -> None:
    """Before Linux 6.13 what is written within some milliseconds has the same time."""
    told(tmp_path, b"")
    half = look(tmp_path, "progress", ME, None)
    (tmp_path / "progress").write_bytes(b"12")
    os.utime(tmp_path / "progress", (1000, 1000))
    found = look(tmp_path, "progress", ME, half.stamp).told
    assert found is not None
    assert found.step == 12


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "progress").symlink_to(tmp_path / "secret")
    assert look(tmp_path / "job", "progress", ME, None) == ProgressLook(stamp=None)
    (tmp_path / "link").symlink_to(tmp_path)
    assert look(tmp_path / "link", "secret", ME, None) == ProgressLook(stamp=None)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress")
    assert look(tmp_path, "progress", ME, None) == ProgressLook(stamp=None)


def test_a_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("42")
    assert look(tmp_path, "progress", ME + 1, None).told is None
    assert text_of(tmp_path, "progress", ME + 1, 10) == ""


def test_what_is_not_there_tells_nothing(tmp_path: Path) -> None:
    assert look(tmp_path / "none", "progress", ME, None) == ProgressLook(stamp=None)
    assert look(tmp_path, "progress", ME, None) == ProgressLook(stamp=None)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("1")
    (tmp_path / "link").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("progress", "link", "none"):
        look(tmp_path, name, ME, None)
        text_of(tmp_path, name, ME, 10)
    assert len(os.listdir("/proc/self/fd")) == before


def test_texts_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "stacks").write_text("x" * 100 + "the end")
    assert text_of(tmp_path, "stacks", ME, 10) == "xxxthe end"


def test_names_are_bounded_and_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for number in range(9):
        (tmp_path / "job" / f"stacks.{number}").touch()
    (tmp_path / "link").symlink_to(tmp_path / "job")
    assert len(names(tmp_path / "job", 5)) == 5
    assert names(tmp_path / "job", 50) == [f"stacks.{number}" for number in range(9)]
    assert names(tmp_path / "link", 5) == []


def test_deep_nonsense_is_no_error() -> None:
    assert parse(b"[" * 4096, 0.0) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("size=64M,nr_inodes=16384", True),
        ("size=64M,nr_inodes=0", True),
        ("size=512K", False),
        ("size=64M,nr_inodes=32", False),
    ],
)
def test_a_full_file_system_has_no_room(tmp_path: Path, options: str, expected: bool) -> None:
    own = ["unshare", "--map-root-user", "--mount"]
    if process.run([*own, "true"], timeout_s=60, check=False).returncode != 0:
        pytest.skip("this machine allows no mounts in a namespace of one's own")
    said = f"print(has_room(Path({str(tmp_path)!r})))"
    asked = f"from pathlib import Path; from {has_room.__module__} import has_room; {said}"
    mounted = f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"'
    done = process.run([*own, "sh", "-c", mounted, str(tmp_path), sys.executable, "-c", asked], timeout_s=60)
    assert done.text.strip() == str(expected)


def test_what_cannot_be_looked_at_is_not_full(tmp_path: Path) -> None:
    assert has_room(tmp_path / "none")
