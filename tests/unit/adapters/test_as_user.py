"""Files of users, looked at with their rights: what the agent itself has is not theirs to see."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from steward.adapters import as_user
from steward.adapters.process import Failed

NOBODY = 65534


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")


def test_what_runs_as_a_user_has_nothing_of_the_agents_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """He may read /proc/PID/environ of whatever runs as him."""
    monkeypatch.setenv("SITE_TOKEN", "CANARY-do-not-show-3")
    environment = as_user.tail("/proc/self/environ", NOBODY, max_bytes=4096, timeout_s=5.0)
    assert environment.split("\0")[:-1] == [f"PATH={os.defpath}", "LC_ALL=C"]


def test_what_the_user_may_not_read_is_not_read() -> None:
    with pytest.raises(Failed, match="Permission denied"):
        as_user.tail("/etc/shadow", NOBODY, max_bytes=4096, timeout_s=5.0)


def test_a_folder_that_the_user_may_not_list_cannot_be_looked_at() -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "step-1.pt").touch()
        with pytest.raises(Failed, match="Permission denied"):
            as_user.newest(folder, NOBODY)


def test_what_runs_as_a_user_can_never_have_more_rights() -> None:
    status = as_user.tail("/proc/self/status", NOBODY, max_bytes=8192, timeout_s=5.0)
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert {lines[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert lines["NoNewPrivs"].strip() == "1"
