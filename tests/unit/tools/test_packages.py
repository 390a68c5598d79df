"""What is in the packages, and what their scripts do, without making one."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.prove import parts
from tests.packages.sites import SITES
from tools.packages import deb, rpm
from tools.packages.contents import CLIENT_NEEDS, NODE_NEEDS, Package, packages
from tools.packages.manual import pages
from tools.packages.sites import ROOT, Workshop, requirements
from tools.packages.trees import fill

_ALL = packages("3.11", "22.05")
_LINE = "optional /usr/lib/steward/steward.so socket=/run/steward/agent.sock"
_LINK = ROOT / "tools/packages/scripts/shim-link"


def _named(name: str) -> Package:
    return next(package for package in _ALL if package.name == name)


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=c\n")
    return conf


def _link(word: str, conf: Path) -> str:
    """What it says to people."""
    done = subprocess.run(
        [_LINK, word], env={**os.environ, "SLURM_CONF": str(conf)}, check=True, stderr=subprocess.PIPE, text=True
    )
    return done.stderr


def test_where_nodes_get_their_files_from_slurmctld_people_are_told_to_send_them(slurm: Path) -> None:
    """Else new steps have no shim, and after its removal each of them complains of a file that is not there."""
    assert _link("enable", slurm) == _link("disable", slurm) == ""
    slurm.write_text("ClusterName=c\nSlurmctldParameters=idle_on_node_suspend,enable_configless\n")
    assert "`scontrol reconfigure` sends it" in _link("enable", slurm)
    assert "`scontrol reconfigure` sends it" in _link("disable", slurm)
    slurm.unlink()
    assert "configless?" in _link("enable", slurm)


def test_every_file_that_a_package_takes_from_the_sources_is_there() -> None:
    sources = {source for package in _ALL for source in package.files.values() if not source.startswith("spank/build/")}
    assert {source for source in sources if not (ROOT / source).is_file()} == set()


def test_no_place_is_in_two_packages() -> None:
    places = [
        place for package in _ALL for place in (*package.files, *package.links, *package.commands, *package.units)
    ]
    assert len(places) == len(set(places))


def test_a_node_gets_every_requirement_that_it_is_said_to_need() -> None:
    assert len(requirements((), NODE_NEEDS)) == len(NODE_NEEDS)
    assert len(requirements((), CLIENT_NEEDS)) == len(CLIENT_NEEDS)


def a_site(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)


def test_each_kind_of_machine_has_the_python_packages_and_models_that_it_needs_and_no_file_comes_twice(
    tmp_path: Path,
) -> None:
    """Of botocore's models, 28 MB, a node asks S3's, and the head three more.

    Byte code that is missing would be written when the module is first imported, and left behind by a purge.
    """
    shop = Workshop(folder=tmp_path, python="3.11")
    models = [f"botocore/data/{name}/model.json" for name in ("s3", "ec2", "sagemaker", "lambda")]
    a_site(
        shop.site("node"),
        "six.py",
        "__pycache__/six.pyc",
        "steward/agent.py",
        "botocore/data/endpoints.json",
        "botocore/loaders.py",
        *models,
    )
    a_site(shop.site("client"), "click/core.py", "botocore/loaders.py", *models)
    a_site(
        shop.site("head"), "six.py", "typing_extensions.py", "__pycache__/six.pyc", "__pycache__/typing_extensions.pyc"
    )
    a_site(shop.site("head"), "click/core.py", "uvicorn/server.py", "botocore/loaders.py", *models)
    found = {}
    for name in ("steward-common", "steward-head"):
        site = fill(shop, replace(_named(name), commands={}, links={}, units=())) / shop.site_packages.lstrip("/")
        found[name] = {str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()}
    assert found["steward-common"] == {
        "six.py",
        "__pycache__/six.pyc",
        "steward/agent.py",
        "botocore/loaders.py",
        "botocore/data/endpoints.json",
        "botocore/data/s3/model.json",
    }
    assert found["steward-head"] == {
        "typing_extensions.py",
        "__pycache__/typing_extensions.pyc",
        "uvicorn/server.py",
        "botocore/data/ec2/model.json",
        "botocore/data/sagemaker/model.json",
    }


def test_packages_of_one_build_go_together() -> None:
    text = deb.control(_named("steward-head"), version="0.1.0-2", architecture="amd64", installed_kib=1)
    assert "Depends: steward-client (= 0.1.0-2)\n" in text


def test_shims_for_two_slurms_exclude_each_other() -> None:
    text = deb.control(_named("steward-shim-22.05"), version="1", architecture="amd64", installed_kib=1)
    assert {"Provides: steward-shim", "Conflicts: steward-shim", "Replaces: steward-shim"} <= set(text.splitlines())


@pytest.mark.parametrize("package", _ALL, ids=lambda package: package.name)
def test_maintainer_scripts_are_sound_shell(package: Package, tmp_path: Path) -> None:
    for name, text in deb.maintainer_scripts(package).items():
        file = tmp_path / name
        file.write_text(text)
        done = subprocess.run(["shellcheck", file], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_an_upgrade_stops_nothing_and_removes_nothing() -> None:
    """dpkg calls prerm and postrm with `upgrade` then, and only `remove` and `purge` do something there."""
    agent = deb.maintainer_scripts(_named("steward-agent"))
    for name in ("prerm", "postrm"):
        done = subprocess.run(
            ["sh", "-xc", agent[name], name, "upgrade", "2"], capture_output=True, text=True, check=True
        )
        assert "systemctl" not in done.stderr
        assert "rm" not in done.stderr.split()


def test_a_spec_packs_each_file_of_the_tree_and_runs_the_same_scripts(tmp_path: Path) -> None:
    (tmp_path / "opt/steward/bin").mkdir(parents=True)
    (tmp_path / "opt/steward/bin/stewardd").write_text("")
    text = rpm.spec(_named("steward-head"), tmp_path, version="0.1.0", release="1")
    assert '"/opt/steward/bin/stewardd"' in text
    assert "Requires: steward-client = 0.1.0-1" in text
    assert "try-restart stewardd.service" in text


def test_the_shim_is_named_once_and_taken_out_again(slurm: Path) -> None:
    stack = slurm.with_name("plugstack.conf")
    stack.write_text("include /etc/slurm/plugstack.conf.d/*.conf")
    _link("enable", slurm)
    _link("enable", slurm)
    assert stack.read_text().splitlines().count(_LINE) == 1
    _link("disable", slurm)
    assert stack.read_text() == "include /etc/slurm/plugstack.conf.d/*.conf\n"


def test_a_plugstack_of_ours_alone_goes_with_us(slurm: Path) -> None:
    _link("enable", slurm)
    _link("disable", slurm)
    assert sorted(slurm.parent.iterdir()) == [slurm]


def test_the_file_that_slurm_conf_names_is_the_one(slurm: Path, tmp_path: Path) -> None:
    slurm.write_text(f"plugstackconfig = {tmp_path}/other.conf  # ours\n")
    _link("enable", slurm)
    assert _LINE in (tmp_path / "other.conf").read_text()


def test_a_file_that_slurm_conf_includes_may_name_it(slurm: Path, tmp_path: Path) -> None:
    slurm.write_text("ClusterName=c\ninclude conf.d/plugins.conf # ours\nInclude conf.d/gone.conf\n")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/plugins.conf").write_text(f"PlugStackConfig={tmp_path}/other.conf\n")
    _link("enable", slurm)
    assert _LINE in (tmp_path / "other.conf").read_text()


def test_the_slurm_conf_that_the_settings_name_is_the_one(slurm: Path, tmp_path: Path) -> None:
    """`steward install` puts the settings on a host before the packages."""
    settings = tmp_path / "steward.toml"
    settings.write_text(f'[cluster]\nslurm_conf = "{slurm}"\n')
    there = {**os.environ, "STEWARD_CONFIG": str(settings)}
    there.pop("SLURM_CONF", None)
    subprocess.run([_LINK, "enable"], env=there, check=True)
    assert _LINE in slurm.with_name("plugstack.conf").read_text()


def test_a_plugstack_in_a_folder_that_is_not_there_is_told_with_the_line_to_add(slurm: Path, tmp_path: Path) -> None:
    slurm.write_text(f"PlugStackConfig={tmp_path}/none/other.conf\n")
    told = _link("enable", slurm)
    assert f"PlugStackConfig={tmp_path}/none/other.conf, and there is no such folder" in told
    assert f"`{_LINE}`" in told
    assert _link("disable", slurm) == ""


def test_a_shim_that_the_site_named_itself_stays_as_it_is(slurm: Path) -> None:
    stack = slurm.with_name("plugstack.conf")
    stack.write_text("optional /opt/lib/steward.so hold=60\n")
    _link("enable", slurm)
    _link("disable", slurm)
    assert stack.read_text() == "optional /opt/lib/steward.so hold=60\n"


def test_a_machine_without_slurm_configuration_is_left_alone(tmp_path: Path) -> None:
    _link("enable", tmp_path / "none/slurm.conf")
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_a_manual_page_that_roff_can_read() -> None:
    made = pages()
    assert {"steward.1", "steward-explain.1", "steward-config-check.1"} <= made.keys()
    assert all(text.startswith(".TH ") and ".SH SYNOPSIS" in text for text in made.values())
    if man := shutil.which("groff"):
        done = subprocess.run(
            [man, "-man", "-ww", "-z"], input=made["steward.1"].encode(), capture_output=True, check=True
        )
        assert done.stderr == b""


def test_the_quickstart_has_at_most_ten_commands() -> None:
    found = [place for place, _ in parts(SITES["configless"])[0]]
    assert 5 <= len(found) <= 10
    assert set(found) == {"build", "controller", "configless", "user"}


_IMPORT_ALL = """
import importlib, pkgutil, sys, steward
print(steward.__file__)
for each in pkgutil.walk_packages(steward.__path__, "steward."):
    try:
        importlib.import_module(each.name)
    except ModuleNotFoundError as missing:  # torch and others are optional
        if missing.name.startswith("steward"):
            raise
print(sorted({"docker", "steward_bed"} & set(sys.modules)))
"""


def _python(site: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run([sys.executable, *argv], env=env, capture_output=True, text=True, timeout=120, check=False)


def test_what_is_installed_needs_no_test_bed() -> None:
    done = _python(ROOT / "daemon", "-c", _IMPORT_ALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["[]"]
