"""What is taken off a host: packages of Steward, and those that only they needed; never what was unused before."""

import os
import subprocess
from pathlib import Path

import pytest

from steward.workflows.far_hosts import REMOVE

_DPKG = "#!/bin/sh\nprintf 'ii steward-common\\nun steward-agent\\nii steward-shim-22.05\\n'\n"
_APT = """#!/bin/sh
case "$*" in
    *autoremove) cat "$APT/unused"; [ ! -e "$APT/purged" ] || cat "$APT/freed" ;;
    purge*) echo "$*" >> "$APT/purged" ;;
esac
"""


def removed(folder: Path, unused: str, freed: str) -> list[str]:
    """Return the orders to apt-get. `unused`: what it would remove before; `freed`: what it would after, too."""
    for name, text in (("dpkg-query", _DPKG), ("apt-get", _APT), ("rpm", "#!/bin/sh\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name, packages in (("unused", unused), ("freed", freed)):
        (folder / name).write_text("".join(f"Remv {each} [1.0-1]\n" for each in packages.split()))
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "APT": str(folder)}
    subprocess.run(["sh", "-c", REMOVE], env=env, check=True, timeout=20)
    return (folder / "purged").read_text().splitlines()


@pytest.mark.parametrize("unused", ["", "oldlib", "oldlib olderlib"])
def test_packages_that_only_steward_needed_go_with_it(tmp_path: Path, unused: str) -> None:
    own = "purge -y -qq steward-common steward-shim-22.05"
    assert removed(tmp_path, unused, "libslurm38 liblua5.4-0") == [own, "purge -y -qq libslurm38 liblua5.4-0"]


def test_packages_that_were_unused_before_stay(tmp_path: Path) -> None:
    assert removed(tmp_path, "oldlib", "") == ["purge -y -qq steward-common steward-shim-22.05"]
