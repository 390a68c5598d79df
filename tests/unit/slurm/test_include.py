"""The file of partitions: found in slurm.conf, replaced as a whole, the last good one kept beside it."""

from pathlib import Path

import pytest

from steward.adapters.slurm.include import IncludeFile
from steward.ports import Permanent, Retryable


def place(folder: Path, conf: str, text: str | None = "# nothing\n") -> IncludeFile:
    (folder / "slurm.conf").write_text(conf)
    if text is not None:
        (folder / "p.conf").write_text(text)
    return IncludeFile(folder / "p.conf", str(folder / "slurm.conf"))


@pytest.mark.parametrize("line", ["include p.conf", "Include p.conf # ours", "  INCLUDE\t{folder}/p.conf"])
def test_a_line_of_slurm_conf_includes_it(tmp_path: Path, line: str) -> None:
    assert place(tmp_path, f"ClusterName=x\n{line.format(folder=tmp_path)}\n").is_included()


@pytest.mark.parametrize("line", ["", "#include p.conf", "include q.conf", "include p.conf.good"])
def test_other_lines_do_not(tmp_path: Path, line: str) -> None:
    file = place(tmp_path, f"ClusterName=x\n{line}\n")

    assert not file.is_included()
    with pytest.raises(Permanent, match=r"add the line `include p\.conf`"):
        file.replace("# new\n")
    assert file.text() == "# nothing\n"


def test_without_slurm_conf_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(Retryable):
        IncludeFile(tmp_path / "p.conf", str(tmp_path / "slurm.conf")).is_included()


def test_what_slurm_read_well_last_is_kept(tmp_path: Path) -> None:
    file = place(tmp_path, "include p.conf\n")
    file.replace("# one\n")
    file.keep_as_good()
    file.replace("# two\n")

    assert (file.text(), file.last_good_text()) == ("# two\n", "# one\n")
    assert {path.name for path in tmp_path.iterdir()} == {"slurm.conf", "p.conf", "p.conf.good"}


def test_a_link_leads_to_the_file_that_is_replaced(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "p.conf").write_text("# nothing\n")
    (tmp_path / "p.conf").symlink_to(own / "p.conf")
    file = place(tmp_path, "include p.conf\n", None)
    file.replace("# one\n")

    assert (tmp_path / "p.conf").is_symlink()
    assert (own / "p.conf").read_text() == "# one\n"


def test_a_file_that_is_not_there_yet_is_told(tmp_path: Path) -> None:
    assert "does not exist" in place(tmp_path, "include p.conf\n", None).why_not_writable()
    assert place(tmp_path, "include p.conf\n").why_not_writable() == ""
