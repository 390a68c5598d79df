"""Fills a folder for each package: Python packages by pip, units, programs, manual pages and completions."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from steward.units.__main__ import render
from tools.packages.contents import HEAD_EXTRAS, NODE_EXTRAS, NODE_NEEDS, PREFIX, Package

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """`folder` is where everything is made; `python` is "3.11"."""

    folder: Path
    python: str

    def tree(self, package: Package) -> Path:
        return self.folder / "trees" / package.name

    def site(self, kind: str) -> Path:
        """Where pip puts the packages of "node", and all of the "head"."""
        return self.folder / "site" / kind

    @property
    def site_packages(self) -> str:
        return f"{PREFIX}/lib/python{self.python}/site-packages"


def run(*argv: str | Path, env: dict[str, str] | None = None) -> str:
    """Its output. Ends all of this when it fails, with what it said."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, check=False, env=env, cwd=ROOT)
    if done.returncode:
        sys.exit(f"`{' '.join(map(str, argv))}` ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def requirements(extras: Iterable[str], only: Sequence[str] = ()) -> list[str]:
    """Of pyproject.toml: its dependencies, those `only` names where given, and those of each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {name.lower() for name in only}
    base = [each for each in project["dependencies"] if not names or _name_of(each) in names]
    return [*base, *(each for extra in extras for each in project["optional-dependencies"][extra])]


def _name_of(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match[0].lower() if match else ""


def fill_sites(shop: Workshop, *, reuse: bool = False) -> None:
    """pip, as it is set up here, fetches and compiles; nothing is compiled where the packages are installed.

    `reuse`: what pip brought for the last build stands, where it brought all."""
    tools, complete = shop.folder / "tools", shop.folder / "site/complete"
    install = (tools / "bin/pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--upgrade")
    made_from = (ROOT / "pyproject.toml").read_text()
    if not (reuse and complete.exists() and complete.read_text() == made_from):
        complete.unlink(missing_ok=True)
        _fill_anew(shop, tools, install)
        complete.write_text(made_from)
    run(*install, "--target", shop.site("node"), "--no-deps", _source(shop))
    shutil.rmtree(shop.site("node") / "bin", ignore_errors=True)


def _fill_anew(shop: Workshop, tools: Path, install: tuple[str | Path, ...]) -> None:
    if not (tools / "bin/pip").exists():
        run(sys.executable, "-m", "venv", tools)
    wanted = {
        "node": requirements(NODE_EXTRAS, NODE_NEEDS),
        "head": requirements((*NODE_EXTRAS, *HEAD_EXTRAS)),
    }
    for kind, lines in wanted.items():
        shutil.rmtree(shop.site(kind), ignore_errors=True)
        run(*install, "--target", shop.site(kind), *lines)
        shutil.rmtree(shop.site(kind) / "bin", ignore_errors=True)


def _source(shop: Workshop) -> Path:
    """A copy, so that nothing is built inside the sources."""
    copy = shop.folder / "source"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "daemon/steward", copy / "daemon/steward", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


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
    compiler = (sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
    run(*compiler, "-s", tree, "-p", "/", place)
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
