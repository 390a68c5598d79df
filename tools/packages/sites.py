"""`python3 -m tools.packages.sites`: what Steward needs of Python, by pip; nothing here needs Steward's own code."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.packages.contents import CLIENT_NEEDS, HEAD_EXTRAS, NODE_EXTRAS, NODE_NEEDS, PREFIX, Package

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_TOOLS = ("setuptools>=68", "wheel", "build")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """`folder` is where everything is made; `python` is "3.11"."""

    folder: Path
    python: str

    def tree(self, package: Package) -> Path:
        return self.folder / "trees" / package.name

    def site(self, kind: str) -> Path:
        """Where pip puts all that one of `KINDS` needs, with what the others have of it, too."""
        return self.folder / "site" / kind

    @property
    def tools(self) -> Path:
        return self.folder / "tools/bin"

    @property
    def pip(self) -> tuple[str | Path, ...]:
        return (self.tools / "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--upgrade")

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


def workshop() -> Workshop:
    return Workshop(folder=ROOT / "build/packages", python=f"{sys.version_info.major}.{sys.version_info.minor}")


def fetch(shop: Workshop, *, reuse: bool = False) -> None:
    """pip, as it is set up here, fetches and compiles; nothing is compiled where the packages are installed.

    `reuse`: what pip brought for the last build stands, where it brought all."""
    complete, made_from = shop.folder / "site/complete", (ROOT / "pyproject.toml").read_text()
    if reuse and complete.exists() and complete.read_text() == made_from:
        return
    complete.unlink(missing_ok=True)
    if not (shop.tools / "pip").exists():
        run(sys.executable, "-m", "venv", shop.tools.parent)
    run(*shop.pip, *_TOOLS)
    wanted = {
        "node": requirements(NODE_EXTRAS, NODE_NEEDS),
        "client": requirements((), (*NODE_NEEDS, *CLIENT_NEEDS)),
        "head": requirements((*NODE_EXTRAS, *HEAD_EXTRAS)),
    }
    for kind, lines in wanted.items():
        shutil.rmtree(shop.site(kind), ignore_errors=True)
        run(*shop.pip, "--target", shop.site(kind), *lines)
        shutil.rmtree(shop.site(kind) / "bin", ignore_errors=True)
        _compile(shop, shop.site(kind))
    complete.write_text(made_from)


def add_own(shop: Workshop) -> None:
    """Steward itself, to what a node has."""
    site = shop.site("node")
    run(*shop.pip, "--no-build-isolation", "--target", site, "--no-deps", _source(shop))
    shutil.rmtree(site / "bin", ignore_errors=True)
    _compile(shop, site / "steward")


def _compile(shop: Workshop, folder: Path) -> None:
    """Byte code that is not checked against the source, with the names that files have where they are installed."""
    compiler = (sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
    prefix = shop.site_packages if folder.parent.name == "site" else f"{shop.site_packages}/{folder.name}"
    run(*compiler, "-s", folder, "-p", prefix, folder)


def _source(shop: Workshop) -> Path:
    """A copy of what is installed, so that nothing is built inside the sources."""
    copy = shop.folder / "source"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "daemon/steward", copy / "daemon/steward", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


if __name__ == "__main__":
    fetch(workshop())
