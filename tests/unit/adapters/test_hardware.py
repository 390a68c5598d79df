"""Names of hardware that outlive an instance."""

from pathlib import Path

import pytest

from steward.adapters.node.identity import Hardware


def test_the_board_and_the_gpus_seen_last_are_named(tmp_path: Path) -> None:
    (tmp_path / "serial").write_text("MX7K0421\n")
    seen: tuple[str, ...] = ()
    hardware = Hardware(tmp_path / "serial", lambda: seen)
    assert hardware() == ("board-MX7K0421",)
    seen = ("GPU-1", "GPU-2")
    assert hardware() == ("board-MX7K0421", "GPU-1", "GPU-2")


@pytest.mark.parametrize("serial", ["", "None", "Not Specified", "To Be Filled By O.E.M.", "00000000", "0123456789"])
def test_a_serial_that_nobody_filled_in_names_no_board(tmp_path: Path, serial: str) -> None:
    (tmp_path / "serial").write_text(serial)
    assert Hardware(tmp_path / "serial", tuple)() == ()


def test_without_a_readable_serial_there_is_no_board(tmp_path: Path) -> None:
    assert Hardware(tmp_path / "serial", tuple)() == ()


def test_a_hostile_serial_is_printable_and_bounded(tmp_path: Path) -> None:
    (tmp_path / "serial").write_bytes(b"abc\x1b[31m\xff" + b"x" * 500)
    (board,) = Hardware(tmp_path / "serial", tuple)()
    assert board.isprintable()
    assert len(board) <= 64
