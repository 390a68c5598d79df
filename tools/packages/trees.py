"""Fills a folder for each package: Python packages, units, programs, manual pages and completions."""

import os
import shutil
import sys
from pathlib import Path

from steward.units.__main__ import render
from tools.packages.contents import HEAD_MODELS, KINDS, NODE_MODELS, PREFIX, Package
from tools.packages.sites import ROOT, Workshop, run

_LAUNCHER = """#!{prefix}/bin/python3 -I
import sys

from {module} import {function}

sys.exit({function}())
"""
_MODELS = Path("botocore/data")
_BYTE_CODE = "__pycache__"
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
    """What a kind has are the files that those before it have not: no file is in two packages."""
    place = _at(tree, shop.site_packages)
    place.mkdir(parents=True)
    before = KINDS[: KINDS.index(package.python)]
    here = {path.name for kind in before for path in _own(shop.site(kind))}
    for path in _own(shop.site(package.python)):
        if path.name in here:
            continue
        if path.parent.name == _BYTE_CODE:
            (place / _BYTE_CODE).mkdir(exist_ok=True)
            shutil.copy(path, place / _BYTE_CODE / path.name)
        elif path.is_dir():
            shutil.copytree(path, place / path.name, ignore=_other_models)
        else:
            shutil.copy(path, place / path.name)
    for model in HEAD_MODELS if package.python == "head" else ():
        shutil.copytree(shop.site("head") / _MODELS / model, place / _MODELS / model)
    if package.python == "node":
        binary = f"/usr/bin/python{shop.python}"
        config = (
            f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {shop.python}\nexecutable = {binary}\n"
        )
        _write(tree, f"{PREFIX}/pyvenv.cfg", config)
        _at(tree, f"{PREFIX}/bin").mkdir(parents=True, exist_ok=True)
        _at(tree, f"{PREFIX}/bin/python3").symlink_to(binary)


def _own(site: Path) -> list[Path]:
    """List the packages and modules of a site, and the byte code of its modules file by file."""
    code = site / _BYTE_CODE
    found = [path for path in site.iterdir() if path != code]
    return sorted([*found, *(code.iterdir() if code.is_dir() else ())])


def _other_models(folder: str, names: list[str]) -> set[str]:
    """Name the models of services that a node does not ask; files about all services stay."""
    if not Path(folder).match(f"*/{_MODELS}"):
        return set()
    return {name for name in names if (Path(folder) / name).is_dir()} - set(NODE_MODELS)


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
