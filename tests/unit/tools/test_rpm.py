"""The packages for Rocky and RHEL, made by the real rpmbuild from trees with every place of theirs, and read by rpm."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from steward.workflows.far_hosts import REMOVE
from tools.packages import deb, rpm
from tools.packages.contents import PREFIX, packages
from tools.packages.sites import ROOT

_ALL = {package.name: package for package in packages("3.11", "22.05")}
_VERSION, _RELEASE = "0.1.0", "2"
_EXTRA = {
    "steward-common": ("/opt/steward/lib/python3.11/site-packages/with space.py",),
    "steward-client": ("/usr/share/zsh/vendor-completions/_steward", "/usr/share/man/man1/steward.1.gz"),
}
"""What `fill` makes beside that which a package declares."""


def _places(name: str) -> set[str]:
    package = _ALL[name]
    return {
        *package.files,
        *package.links,
        *(f"{PREFIX}/bin/{command}" for command in package.commands),
        *(f"/usr/lib/systemd/system/{unit}" for unit in package.units),
        *_EXTRA.get(name, ()),
    }


def _run(*argv: str | Path) -> str:
    return subprocess.run([str(word) for word in argv], capture_output=True, check=True).stdout.decode()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    assert shutil.which("rpmbuild"), "rpmbuild is missing: make setup"
    out = tmp_path_factory.mktemp("rpm")
    made = {}
    for name, package in _ALL.items():
        tree = tmp_path_factory.mktemp(name)
        for folder in package.folders:
            (tree / folder.lstrip("/")).mkdir(parents=True)
        for place in _places(name):
            file = tree / place.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")
        made[name] = rpm.build(package, tree, out, _VERSION, _RELEASE)
    return made


@pytest.mark.parametrize("name", _ALL)
def test_a_package_has_each_of_its_files_and_folders_and_roots(built: Mapping[str, Path], name: str) -> None:
    lines = _run("rpm", "-qp", "--qf", "[%{FILEUSERNAME} %{FILEMODES:perms} %{FILENAMES}\n]", built[name]).splitlines()
    found = [line.split(" ", 2) for line in lines]
    assert {user for user, _, _ in found} == {"root"}
    moved = {place.replace("zsh/vendor-completions", "zsh/site-functions") for place in _places(name)}
    assert {place for _, mode, place in found if not mode.startswith("d")} == moved
    assert {place for _, mode, place in found if mode.startswith("d")} >= set(_ALL[name].folders)


def test_packages_of_one_build_go_together_and_need_python_and_munge(built: Mapping[str, Path]) -> None:
    needs = {
        name: {
            line
            for line in _run("rpm", "-qp", "--requires", file).splitlines()
            if not line.startswith(("rpmlib(", "/bin/sh"))
        }
        for name, file in built.items()
    }
    together = f"= {_VERSION}-{_RELEASE}"
    assert needs == {
        "steward-common": {"python3.11", "munge"},
        "steward-client": {f"steward-common {together}"},
        "steward-head": {f"steward-client {together}"},
        "steward-agent": {f"steward-common {together}"},
        "steward-shim-22.05": set(),
    }


def test_shims_for_two_slurms_exclude_each_other(built: Mapping[str, Path]) -> None:
    shim = built["steward-shim-22.05"]
    assert "steward-shim" in _run("rpm", "-qp", "--provides", shim).splitlines()
    assert _run("rpm", "-qp", "--conflicts", shim).split() == ["steward-shim"]


@pytest.mark.parametrize("name", ["steward-head", "steward-agent", "steward-shim-22.05"])
def test_an_upgrade_stops_nothing_and_a_removal_stops_what_runs(built: Mapping[str, Path], name: str) -> None:
    """rpm calls the old package's scripts with 1 when another version takes its place, with 0 when none does."""
    before, after = (_run("rpm", "-qp", "--qf", tag, built[name]) for tag in ("%{PREUN}", "%{POSTUN}"))
    for script in {before, after} - {"(none)"}:
        done = subprocess.run(["sh", "-euxc", script, "rpm", "1"], capture_output=True, text=True, check=True)
        assert done.stderr.split() == ["+", "[", "1", "=", "0", "]"]
    assert ("shim-link disable" if "shim" in name else "systemctl disable --quiet --now") in before


@pytest.mark.parametrize("name", ["steward-head", "steward-agent", "steward-shim-22.05"])
def test_an_install_and_an_upgrade_set_up_the_same(built: Mapping[str, Path], name: str) -> None:
    script = _run("rpm", "-qp", "--qf", "%{POSTIN}", built[name])
    assert deb.body_of(_ALL[name], "installed").strip() == script.strip()


def test_an_uninstall_takes_away_what_rpm_leaves_and_a_purge_of_debian_does_not() -> None:
    purged = {
        word
        for file in (ROOT / "tools/packages/scripts").glob("*.purge")
        for word in file.read_text().split()
        if word.startswith("/")
    }
    assert len(purged) >= 5
    assert purged - set(REMOVE.split()) == set()
