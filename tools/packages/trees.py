"""Fills a folder for each package: Python packages, units, programs, manual pages and completions."""

import os
import shutil
import sys
from pathlib import Path

from steward.units.__main__ import render
from tools.packages.contents import PREFIX, Package
from tools.packages.sites import ROOT, Workshop, run

_LAUNCHER = """#!{prefix}/bin/python3 -I
import sys

from {module} import {function}

sys.exit({function}())
"""
_SHELLS = {
    "bash": "/usr/share/bash-completion/completions/steward",
    "zsh": "/usr/share/zsh/vendor-completions/_steward",
    "fish": "/usr/share/fish/vendor_completions.d/steward.fish",
}


def fill(shop: Workshop, package: Package) -> Path:
    """The package's tree, made anew."""
    tree = shop.tree(package)
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for folder in package.folders:
        _at(tree, folder).mkdir(parents=True)
    if package.python:
        _python(shop, package, tree)
    for name, entry in package.commands.items():
        module, _, function = entry.partition(":")
        _write(tree, f"{PREFIX}/bin/{name}", _LAUNCHER.format(prefix=PREFIX, module=module, function=function), 0o755)
    for place, target in package.links.items():
        _at(tree, place).parent.mkdir(parents=True, exist_ok=True)
        _at(tree, place).symlink_to(target)
    for place, source in package.files.items():
        _at(tree, place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, _at(tree, place))
        _at(tree, place).chmod(0o644 if place.endswith(".so") else 0o755)
    _units(package, tree)
    if "steward" in package.commands:
        _manual(shop, tree)
    return tree


def _python(shop: Workshop, package: Package, tree: Path) -> None:
    """The head's are those that the nodes' are not: no file is in two packages."""
    place = _at(tree, shop.site_packages)
    place.mkdir(parents=True)
    here = {path.name for path in shop.site("node").iterdir()}
    for path in sorted(shop.site(package.python).iterdir()):
        if package.python == "node" or path.name not in here:
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, place / path.name)
    if package.python == "node":
        binary = f"/usr/bin/python{shop.python}"
        config = (
            f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {shop.python}\nexecutable = {binary}\n"
        )
        _write(tree, f"{PREFIX}/pyvenv.cfg", config)
        _at(tree, f"{PREFIX}/bin").mkdir(parents=True, exist_ok=True)
        _at(tree, f"{PREFIX}/bin/python3").symlink_to(binary)


def _units(package: Package, tree: Path) -> None:
    for name in package.units:
        _write(tree, f"/usr/lib/systemd/system/{name}", render(name, Path(f"{PREFIX}/bin")))
    if package.name == "steward-head":
        _write(tree, "/usr/lib/sysusers.d/steward.conf", render("steward.sysusers", Path(PREFIX)))


def _manual(shop: Workshop, tree: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (shop.site("node"), shop.site("head"), ROOT)))}
    pages = _at(tree, "/usr/share/man/man1")
    pages.mkdir(parents=True)
    run(sys.executable, "-m", "tools.packages.manual", pages, env=env)
    for shell, place in _SHELLS.items():
        said = run(
            sys.executable,
            "-c",
            "from steward.cli import main; main(prog_name='steward')",
            env={**env, "_STEWARD_COMPLETE": f"{shell}_source"},
        )
        _write(tree, place, said)


def _at(tree: Path, place: str) -> Path:
    return tree / place.lstrip("/")


def _write(tree: Path, place: str, text: str, mode: int = 0o644) -> None:
    file = _at(tree, place)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
