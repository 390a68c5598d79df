"""Which checkpoint a job goes on from, by example."""

import os
import zipfile
from pathlib import Path

import pytest

from steward.job import latest_checkpoint
from steward.job.checkpoints import step_of


def dcp(folder: Path, *, metadata: bytes = b"x", shard: bytes = b"x") -> Path:
    folder.mkdir()
    (folder / "__0_0.distcp").write_bytes(shard)
    (folder / ".metadata").write_bytes(metadata)
    return folder


def written(file: Path, content: bytes = b"weights", *, at: float = 1000.0) -> Path:
    file.write_bytes(content)
    os.utime(file, (at, at))
    return file


def test_the_greatest_step_wins_whenever_it_was_written(tmp_path: Path) -> None:
    newest = written(tmp_path / "step-100.pt", at=1000)
    written(tmp_path / "step-99.pt", at=2000)
    assert latest_checkpoint(tmp_path) == newest


def test_without_numbers_the_last_written_wins(tmp_path: Path) -> None:
    written(tmp_path / "a.pt", at=1000)
    newest = written(tmp_path / "b.pt", at=2000)
    assert latest_checkpoint(str(tmp_path)) == newest


def test_a_distributed_checkpoint_without_its_metadata_is_not_taken(tmp_path: Path) -> None:
    whole = dcp(tmp_path / "step-1")
    dcp(tmp_path / "step-2", metadata=b"")
    dcp(tmp_path / "step-3", shard=b"")
    (tmp_path / "step-4").mkdir()
    (dcp(tmp_path / "step-5") / ".metadata").unlink()
    assert latest_checkpoint(tmp_path) == whole


@pytest.mark.parametrize("marker", ["COMPLETE", ".complete"])
def test_a_folder_with_a_marker_is_complete(tmp_path: Path, marker: str) -> None:
    (tmp_path / "checkpoint-500").mkdir()
    assert latest_checkpoint(tmp_path) is None
    (tmp_path / "checkpoint-500" / marker).touch()
    assert latest_checkpoint(tmp_path) == tmp_path / "checkpoint-500"


@pytest.mark.parametrize(
    "name",
    [".step-9.pt", "step-9.pt.tmp", "step-9.tmp.pt", "step-9.partial", "step-9~", "tmp_step-9", "step-9.tmp1234"],
)
def test_a_draft_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    written(tmp_path / name)
    assert latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize("name", ["template-9.pt", "department-3.pt", "attempt-2.pt"])
def test_a_name_that_only_holds_such_letters_is_no_draft(tmp_path: Path, name: str) -> None:
    assert latest_checkpoint(tmp_path) is None
    kept = written(tmp_path / name)
    assert latest_checkpoint(tmp_path) == kept


def test_an_archive_that_was_cut_off_is_not_taken(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "step-1.npz", "w") as out:
        out.writestr("weights", b"0" * 1000)
    content = (tmp_path / "step-1.npz").read_bytes()
    written(tmp_path / "step-2.npz", content[:-30])
    written(tmp_path / "step-3.pt", content[:-30])
    written(tmp_path / "step-4.npz", b"no archive")
    written(tmp_path / "step-5.pt", b"")
    assert latest_checkpoint(tmp_path) == tmp_path / "step-1.npz"


def test_tensors_that_were_cut_off_are_not_taken(tmp_path: Path) -> None:
    header = b'{"__metadata__":{"a":"b"},"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    start = len(header).to_bytes(8, "little") + header
    whole = written(tmp_path / "step-1.safetensors", start + b"1234")
    written(tmp_path / "step-2.safetensors", start + b"123")
    written(tmp_path / "step-3.safetensors", start[:20])
    written(tmp_path / "step-4.safetensors", b"\xff" * 64)
    written(tmp_path / "step-5.safetensors", (2).to_bytes(8, "little") + b"[]")
    assert latest_checkpoint(tmp_path) == whole


def test_a_pattern_leaves_other_files_alone(tmp_path: Path) -> None:
    written(tmp_path / "digits-2026.npz.txt")
    kept = written(tmp_path / "model_7.pt")
    assert latest_checkpoint(tmp_path, "model_*.pt") == kept


def test_links_and_pipes_are_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "step-9.pt").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "step-10.pt")
    assert latest_checkpoint(tmp_path) is None


def test_what_cannot_be_read_is_no_checkpoint(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path / "none") is None
    assert latest_checkpoint(written(tmp_path / "file")) is None
    assert latest_checkpoint("\0") is None


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-00000120", 120),
        ("epoch=3-step=1200.ckpt", 1200),
        ("iter_7.pt", 7),
        ("checkpoint-500", 500),
        ("global_step400", 400),
        ("model_step12_rank0.pt", 12),
        ("model.42.pt", 42),
        ("run2_7", 7),
        ("last.ckpt", -1),
        ("weights.h5", -1),
    ],
)
def test_a_name_tells_the_step(name: str, step: int) -> None:
    assert step_of(name) == step
