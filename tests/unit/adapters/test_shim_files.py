"""What the head says of the site, as the shim reads it."""

import stat
from pathlib import Path

from steward.adapters.node.shim_files import DEFAULTS, WARNING, write_defaults, write_warning
from steward.model.resume_mode import ResumeMode, SiteDefault

GPU = SiteDefault(partition="gpu", account="llm", mode=ResumeMode.parse("any:3,max=7"))
LONG = SiteDefault(qos="long", mode=ResumeMode.parse("1"))


def test_each_default_is_a_line_that_every_user_may_read(tmp_path: Path) -> None:
    write_defaults(tmp_path / "run", (GPU, LONG))
    file = tmp_path / "run" / DEFAULTS
    assert file.read_text() == "partition=gpu account=llm mode=any:3,max=7\nqos=long mode=1\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_without_defaults_there_is_no_file(tmp_path: Path) -> None:
    write_defaults(tmp_path, (GPU,))
    write_defaults(tmp_path, ())
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_would_be_read_as_more_than_one_word_is_left_out(tmp_path: Path) -> None:
    write_defaults(tmp_path, (SiteDefault(account="a mode=1", mode=GPU.mode), LONG))
    assert (tmp_path / DEFAULTS).read_text() == "qos=long mode=1\n"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_defaults(tmp_path / "file", (GPU,))
    assert (tmp_path / "file").read_text() == ""


def test_the_warning_is_one_line_that_every_user_may_read_while_there_is_one(tmp_path: Path) -> None:
    write_warning(tmp_path, "resuming is off")
    file = tmp_path / WARNING
    assert file.read_text() == "resuming is off\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    write_warning(tmp_path, "")
    assert list(tmp_path.iterdir()) == []
