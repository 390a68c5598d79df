"""Files of users, looked at with their rights: what the agent itself has is not theirs to see."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from steward.adapters.node import as_user
from steward.adapters.process import Failed, Left, begin, end, run
from tests.fakes.until import FACT_S

NOBODY = 65534


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")


def test_what_runs_as_a_user_has_nothing_of_the_agents_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SITE_TOKEN", "CANARY-do-not-show-3")
    environment = as_user.tail("/proc/self/environ", os.geteuid(), max_bytes=4096, timeout_s=FACT_S)
    assert environment.split("\0")[:-1] == [f"PATH={os.defpath}", "LC_ALL=C"]


@pytest.mark.parametrize("file", ["environ", "mem"])
def test_what_runs_as_a_user_cannot_be_traced_by_him(file: str) -> None:
    """The kernel gives what /proc tells of such a process to root, also to itself."""
    with pytest.raises(Failed, match="Permission denied"):
        as_user.tail(f"/proc/self/{file}", NOBODY, max_bytes=4096, timeout_s=FACT_S)


def test_what_runs_as_a_user_is_no_better_kept_than_his_own_when_memory_is_full() -> None:
    own = Path("/proc/self/oom_score_adj")
    before = own.read_text()
    own.write_text(str(int(before) + 10))
    try:
        assert as_user.tail("/proc/self/oom_score_adj", NOBODY, max_bytes=64, timeout_s=FACT_S) == "0\n"
    finally:
        own.write_text(before)


_AGENT = """import sys; from pathlib import Path; from steward.adapters.node import as_user
Path(sys.argv[1], "cgroup.procs").write_text("0")
print(as_user.tail("/proc/self/cgroup", int(sys.argv[2]), max_bytes=4096, timeout_s=60.0))"""


def _unified() -> Path:
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    found = next((Path(one[4]) for one in mounts if one[one.index("-") + 1] == "cgroup2"), None)
    if found is None or not os.access(found, os.W_OK) or os.statvfs(found).f_flag & os.ST_RDONLY:
        pytest.skip("no cgroup v2 can be written here")
    return found


@pytest.fixture
def agents_cgroup() -> Iterator[Path]:
    cgroup = Path(mkdtemp(prefix="steward-test-", dir=_unified()))
    yield cgroup
    for folder in (*(path for path in cgroup.iterdir() if path.is_dir()), cgroup):
        folder.rmdir()


def _place_of_look(agents_cgroup: Path, uid: int) -> str:
    agent = run((sys.executable, "-c", _AGENT, str(agents_cgroup), str(uid)), timeout_s=FACT_S)
    place = next(line for line in agent.text.splitlines() if line.startswith("0::"))
    return place.partition(agents_cgroup.name)[2]


@pytest.mark.parametrize(("uid", "where"), [(NOBODY, "/users"), (0, "")])
def test_what_runs_as_a_user_is_not_in_the_agents_cgroup(agents_cgroup: Path, uid: int, where: str) -> None:
    assert _place_of_look(agents_cgroup, uid) == where


def test_an_agent_that_can_make_no_cgroup_looks_all_the_same(agents_cgroup: Path) -> None:
    (agents_cgroup / "cgroup.max.descendants").write_text("0")
    assert _place_of_look(agents_cgroup, NOBODY) == ""


def test_what_the_user_may_not_read_is_not_read() -> None:
    with pytest.raises(Failed, match="Permission denied"):
        as_user.tail("/etc/shadow", NOBODY, max_bytes=4096, timeout_s=FACT_S)


def test_why_a_file_cannot_be_read_is_said_in_its_users_words(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (("none", "No such file or directory"), ("loop", "Too many levels of symbolic links")):
        with pytest.raises(Failed) as failed:
            as_user.tail(str(tmp_path / name), os.geteuid(), max_bytes=4096, timeout_s=FACT_S)
        assert str(failed.value) == why


def test_of_a_look_that_takes_too_long_the_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_user, "_CHILD", ("sh", "-c", "sleep 60"))
    with pytest.raises(Failed, match=r"^no answer within 0\.2 s$"):
        as_user.tail("/x", os.geteuid(), max_bytes=4096, timeout_s=0.2)


def test_a_folder_that_the_user_may_not_list_cannot_be_looked_at() -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "step-1.pt").touch()
        with pytest.raises(Failed, match="Permission denied"):
            as_user.newest(folder, NOBODY)


def test_what_runs_as_a_user_can_never_have_more_rights() -> None:
    status = as_user.tail("/proc/self/status", NOBODY, max_bytes=8192, timeout_s=FACT_S)
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert {lines[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert lines["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize(
    ("start", "most", "found"), [(0, 100, "0123456789"), (6, 100, "6789"), (6, 2, "89"), (10, 100, ""), (11, 3, "789")]
)
def test_of_an_output_only_what_came_since_is_read_unless_it_was_emptied(
    tmp_path: Path, start: int, most: int, found: str
) -> None:
    file = tmp_path / "out"
    file.write_text("0123456789")
    assert as_user.tail(str(file), os.geteuid(), max_bytes=most, timeout_s=FACT_S, start=start) == found


def test_of_a_file_that_has_a_start_of_its_own_only_what_came_since_is_read(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("0123456789")
    inode = file.stat().st_ino

    def tail(starts: dict[int, int]) -> str:
        return as_user.tail(str(file), os.geteuid(), max_bytes=100, timeout_s=FACT_S, start=2, starts=starts)

    assert tail({inode: 7, inode + 1: 9}) == "789"
    assert [tail({inode + 1: 9}), tail({inode: 11})] == ["23456789", "0123456789"]


def test_while_a_look_hangs_no_other_is_begun_as_that_user_and_those_as_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = os.geteuid(), 65534
    child = begin(("sleep", "60"))

    def hang(argv: Sequence[str], **more: object) -> None:
        raise Left("hangs", child)

    with monkeypatch.context() as patch:
        patch.setattr(as_user, "run", hang)
        patch.setattr("steward.adapters.process._kill_group", lambda child: None)
        with pytest.raises(Left):
            as_user.newest("/fuse", other)
        patch.setattr(as_user, "run", run)
        with pytest.raises(Failed, match=f"a look at a file of uid {other} hangs in the kernel"):
            as_user.newest("/", other)
        assert as_user.newest(str(tmp_path), own) is None, "an empty folder"
    assert end(child, FACT_S)
    assert as_user.newest("/", other) is not None
