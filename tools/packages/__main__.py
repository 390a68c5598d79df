"""`PYTHONPATH=daemon python3 -m tools.packages [--out FOLDER]`: what a site installs, for the release of this machine.

Needs python3-venv, a C compiler, make, libslurm-dev, libsystemd-dev and python3-dev here; no machine that installs the
packages needs any of them. rpm files are made where rpmbuild is, deb files where dpkg-deb is.
"""

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from steward import __version__
from tools.packages import deb, rpm
from tools.packages.contents import Package, packages
from tools.packages.sites import ROOT, Workshop, add_own, fetch, run, workshop
from tools.packages.trees import fill

_ASK_SLURM = "#include <slurm/slurm.h>\nrelease=SLURM_VERSION_NUMBER\n"


def slurm_release(flags: str = "") -> str:
    """`22.05`: of the header that the shim is built with."""
    compiler = os.environ.get("CC", "cc")
    done = subprocess.run(
        [compiler, "-E", "-P", *flags.split(), "-"], input=_ASK_SLURM.encode(), stdout=subprocess.PIPE, check=True
    )
    number = int(done.stdout.decode().rsplit("release=", 1)[1].strip(), 0)
    return f"{number >> 16 & 0xFF:02d}.{number >> 8 & 0xFF:02d}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.packages", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--release", default="1", help="Counts builds of one version.")
    parser.add_argument("--reuse", action="store_true", help="Do not fetch Python packages again.")
    parser.add_argument("--quick", action="store_true", help="For a test: no archives of Python, nothing compressed.")
    parser.add_argument("--shim-only", action="store_true", help="Only the shim, for one more Slurm.")
    said = parser.parse_args()
    out = said.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    shop = workshop()
    flags = os.environ.get("SLURM_CFLAGS", "")
    for sources, target in (("spank", "all"), ("reader", "try")):
        run("make", "-s", "-C", sources, target)
    wanted = packages(shop.python, slurm_release(flags))
    if said.shim_only:
        wanted = tuple(each for each in wanted if "steward-shim" in each.provides)
    else:
        fetch(shop, reuse=said.reuse)
        add_own(shop)
    if not (said.shim_only or said.quick):
        python_archives(shop, out)
    for package in wanted:
        for file in pack(shop, package, out, Build(release=said.release, compressed=not said.quick)):
            print(file)
    shutil.rmtree(out / ".rpm", ignore_errors=True)
    return 0


def python_archives(shop: Workshop, out: Path) -> None:
    """The wheel, which hooks into nothing, and the sources."""
    run(shop.tools / "python", "-m", "build", "--no-isolation", "--outdir", out, shop.folder / "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """`release` counts builds of one version."""

    release: str
    compressed: bool


def pack(shop: Workshop, package: Package, out: Path, how: Build) -> list[Path]:
    """One file for each kind that can be made here."""
    tree, made = fill(shop, package), []
    if shutil.which("rpmbuild") and how.compressed:
        made.append(rpm.build(package, tree, out, __version__, how.release))
    if shutil.which("dpkg-deb"):
        made.append(deb.build(package, tree, out, f"{__version__}-{how.release}", compressed=how.compressed))
    return made


if __name__ == "__main__":
    sys.exit(main())
