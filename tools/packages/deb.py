"""Debian packages by dpkg-deb; no debhelper is needed."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.packages.contents import Package
from tools.packages.sites import ROOT, run

_PHASES = {
    "postinst": ("installed", "configure"),
    "prerm": ("removing", "remove"),
    "postrm": ("removed", "remove"),
}
SCRIPTS = ROOT / "tools/packages/scripts"


def control(
    package: Package, *, version: str, architecture: str, installed_kib: int, libraries: Sequence[str] = ()
) -> str:
    """The package's control file. Packages of Steward go together: their versions are the same."""
    own = [f"{each} (= {version})" if each.startswith("steward-") else each for each in package.depends]
    own += libraries
    fields = {
        "Package": package.name,
        "Version": version,
        "Architecture": architecture,
        "Maintainer": "Steward developers <steward@localhost>",
        "Installed-Size": str(installed_kib),
        "Depends": ", ".join(own),
        "Provides": ", ".join(package.provides),
        "Conflicts": ", ".join(package.provides),
        "Replaces": ", ".join(package.provides),
        "Section": "admin",
        "Priority": "optional",
        "Description": package.summary,
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def library_packages(tree: Path) -> tuple[str, ...]:
    """Return the Debian package of the Slurm library that `steward-slurm` in the tree is linked with: Slurm's own
    packages do not bring it. Empty where no package has it, as for a Slurm that a site built by hand."""
    for program in tree.rglob("steward-slurm"):
        found = re.search(r"libslurm\.so\S* => (/\S+)", run("ldd", program))
        owner = subprocess.run(
            ["dpkg-query", "--search", Path(found[1]).resolve() if found else "-"], capture_output=True, text=True
        )
        if not owner.returncode:
            return (owner.stdout.partition(":")[0],)
    return ()


def maintainer_scripts(package: Package) -> Mapping[str, str]:
    """postinst, prerm and postrm, where the package has something to do then."""
    found = {}
    for name, (part, word) in _PHASES.items():
        parts = {word: body_of(package, part)}
        if name == "postrm":
            parts["purge"] = body_of(package, "purge")
        cases = "".join(f"    {word})\n{_indented(text)}        ;;\n" for word, text in parts.items() if text)
        if cases:
            found[name] = f'#!/bin/sh\nset -e\n\ncase "$1" in\n{cases}esac\n'
    return found


def body_of(package: Package, part: str) -> str:
    file = SCRIPTS / f"{package.scripts}.{part}"
    return file.read_text() if package.scripts and file.exists() else ""


def _indented(text: str) -> str:
    return "".join(f"        {line}\n" if line else "\n" for line in text.splitlines())


def build(package: Package, tree: Path, out: Path, version: str, *, compressed: bool = True) -> Path:
    """The finished file in `out`."""
    architecture = run("dpkg", "--print-architecture").strip()
    size = sum(path.lstat().st_size for path in tree.rglob("*")) // 1024
    debian = tree / "DEBIAN"
    debian.mkdir()
    libraries = library_packages(tree)
    text = control(package, version=version, architecture=architecture, installed_kib=size, libraries=libraries)
    (debian / "control").write_text(text)
    for name, script in maintainer_scripts(package).items():
        (debian / name).write_text(script)
        (debian / name).chmod(0o755)
    file = out / f"{package.name}_{version}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", *(["-Zxz", "-z1"] if compressed else ["-Znone"]), "--build", tree, file)
    return file
