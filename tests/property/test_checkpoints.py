"""Whatever a crash left in a folder of checkpoints: never an incomplete one is taken, always the newest whole one."""

import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.job import latest_checkpoint
from steward.job.checkpoints import step_of


def _dcp(path: Path) -> None:
    path.mkdir()
    (path / "__0_0.distcp").write_bytes(b"shard")
    (path / ".metadata").write_bytes(b"meta")


def _dcp_torn(path: Path) -> None:
    path.mkdir()
    (path / "__0_0.distcp").write_bytes(b"shard")


def _dcp_draft(path: Path) -> None:
    _dcp(path.with_name(f".{path.name}"))


def _marked(path: Path) -> None:
    path.mkdir()
    (path / "COMPLETE").touch()


def _unmarked(path: Path) -> None:
    path.mkdir()
    (path / "model.bin").write_bytes(b"weights")


def _archive(path: Path) -> None:
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as out:
        out.writestr("w", b"0" * 100)


def _archive_torn(path: Path) -> None:
    _archive(path)
    file = path.with_suffix(".npz")
    os.truncate(file, file.stat().st_size - 25)


def _empty(path: Path) -> None:
    path.with_suffix(".pt").touch()


def _draft(path: Path) -> None:
    path.with_suffix(".pt.tmp").write_bytes(b"weights")


def _pipe(path: Path) -> None:
    os.mkfifo(path.with_suffix(".pt"))


WHOLE: tuple[Callable[[Path], None], ...] = (_dcp, _marked, _archive)
TORN: tuple[Callable[[Path], None], ...] = (_dcp_torn, _dcp_draft, _unmarked, _archive_torn, _empty, _draft, _pipe)


@settings(max_examples=60)
@given(st.dictionaries(st.integers(0, 10**9), st.sampled_from(WHOLE + TORN), max_size=8))
def test_it_is_always_the_newest_whole_one(made: dict[int, Callable[[Path], None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for step, make in made.items():
            make(Path(folder) / f"step-{step}")
        found = latest_checkpoint(folder)
    whole = [step for step, make in made.items() if make in WHOLE]
    assert (found is None) == (not whole)
    if found is not None:
        assert step_of(found.name) == max(whole)


@settings(max_examples=200)
@given(st.sampled_from([".pt", ".npz", ".safetensors", ""]), st.binary(max_size=64))
def test_garbage_never_raises(suffix: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"step-1{suffix}").write_bytes(content)
        latest_checkpoint(folder)
