"""File systems that do not answer must never hold the agent, nor cost it a child for every look."""

from pathlib import Path

import pytest

from steward.adapters import proc
from steward.adapters.node.mount_looks import HUNG, NOT_MOUNTED, MountLooks
from steward.adapters.node.probe import LocalProbes, mounts, of_types
from steward.model.probe import TouchMounts
from tests.fakes.hung_mount import HungMount, can_mount, hung_mount
from tests.fakes.until import FACT_S, LIMITS_S, until

needs_fuse = pytest.mark.skipif(not can_mount(), reason="needs root and /dev/fuse")
TIMEOUT_S = 0.5


def test_file_systems_that_answer_say_nothing() -> None:
    assert MountLooks().look(("/", "/proc"), FACT_S) == {"/": "", "/proc": ""}


def test_an_error_is_told_in_the_systems_words(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    assert "No such file or directory" in MountLooks().look((gone,), FACT_S)[gone]


def test_a_path_that_looks_like_an_option_is_a_path() -> None:
    assert "No such file" in MountLooks().look(("--version",), FACT_S)["--version"]


@needs_fuse
@pytest.mark.timeout(300)
def test_a_hung_mount_is_told_in_time_with_one_child_however_often_we_look(tmp_path: Path) -> None:
    looks = MountLooks()
    with hung_mount(tmp_path / "hung") as path:
        for limit_s in LIMITS_S:
            assert looks.look((str(path),), limit_s) == {str(path): HUNG}
            if looks.left:
                break
        (child,) = looks.left
        until("SIGKILL did not end it: nothing can", lambda: (seen := proc.look(child)) and seen.state == "D")
        for _ in range(3):
            # nobody was asked about the one that hangs, so nobody was waited for
            assert looks.look((str(path), "/"), 600.0) == {str(path): HUNG, "/": ""}
        assert looks.left == (child,)
    until("the child is collected", lambda: looks.look(("/",), FACT_S) == {"/": ""} and looks.left == ())
    assert proc.look(child) is None  # collected, no zombie


@needs_fuse
@pytest.mark.timeout(300)
def test_a_mount_that_answers_again_is_asked_again(tmp_path: Path) -> None:
    looks = MountLooks()
    with HungMount(tmp_path):
        assert looks.look((str(tmp_path),), TIMEOUT_S) == {str(tmp_path): HUNG}
    until("it answers", lambda: looks.look((str(tmp_path),), FACT_S) == {str(tmp_path): ""})


@needs_fuse
@pytest.mark.timeout(300)
def test_the_probe_finds_mounts_by_their_type_and_touches_no_path_that_is_not_mounted(tmp_path: Path) -> None:
    probes = LocalProbes(skew_s=lambda: None)
    with hung_mount(tmp_path / "hung") as path:
        probe = TouchMounts(paths=(str(tmp_path),), types=("fuse.hung",), timeout_s=TIMEOUT_S)
        seen = probes.look(probe).mounts  # those of tests that run beside this one, too
        assert (seen[str(tmp_path)], seen[str(path)]) == (NOT_MOUNTED, HUNG)


def test_the_mount_table_is_read_with_its_escapes_and_bad_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(
        "nas:/home /home nfs4 rw 0 0\nnas:/a /with\\040space nfs rw 0 0\nshort line\n\n/dev/sda / ext4 rw 0 0\n"
    )
    table = mounts(tmp_path)
    assert [mount.point for mount in table] == ["/home", "/with space", "/"]
    assert of_types(table, ("nfs", "nfs4")) == ("/home", "/with space")
