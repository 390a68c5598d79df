"""Bundles of stacks on the head: for its own eyes, bounded in number and size."""

import os
from pathlib import Path

from steward.adapters.wire.job_messages import MAX_BUNDLE, BundlePiece
from steward.head.piece_files import _BUNDLES, Bundles
from steward.model.ids import NodeName

N1, N2 = NodeName("n1"), NodeName("n2")


def piece(text: str, offset: int = 0, name: str = "7-0-1") -> BundlePiece:
    return BundlePiece(name=name, offset=offset, text=text, is_last=True)


def test_each_nodes_part_is_a_file_that_only_the_head_may_read(tmp_path: Path) -> None:
    bundles = Bundles(tmp_path / "bundles", keep_days=1)
    bundles.take(N1, piece("one "))
    bundles.take(N1, piece("two", 4))
    bundles.take(N2, piece("other"))
    bundles.settle()
    file = bundles.path("7-0-1", N1)
    assert file == tmp_path / "bundles" / "7-0-1" / "n1.txt"
    assert file.read_text() == "one two"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert bundles.path("7-0-1", N2).read_text() == "other"


def test_the_oldest_bundles_make_room(tmp_path: Path) -> None:
    bundles = Bundles(tmp_path, keep_days=1)
    for number in range(_BUNDLES):
        folder = tmp_path / f"{number}-0-1"
        folder.mkdir()
        (folder / "n1.txt").touch()
        os.utime(folder, (number, number))
    bundles.take(N1, piece("new", name="new-0-1"))
    bundles.settle()
    assert len(list(tmp_path.iterdir())) == _BUNDLES
    assert not (tmp_path / "0-0-1").exists()
    assert (tmp_path / "1-0-1").exists()


def test_no_file_grows_beyond_its_limit(tmp_path: Path) -> None:
    bundles = Bundles(tmp_path, keep_days=1)
    bundles.take(N1, piece("x" * 100, MAX_BUNDLE - 10))
    bundles.settle()
    assert bundles.path("7-0-1", N1).stat().st_size == MAX_BUNDLE
