"""PyTorch for a bed's jobs: that of the tests' own Python, which machines of the docker test bed get a copy of."""

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

import steward
from steward_bed.bed import Bed
from tests.e2e.on_node import has_own_machines

_OURS = "steward-slurm"


def torch_of(bed: Bed) -> Mapping[str, str]:
    """What the job's script has to find in its environment: a `PYTHON` with torch and Steward's package, and the like.
    Fails the test where torch is not installed."""
    try:
        distribution("torch")
    except PackageNotFoundError:
        pytest.fail("torch is not installed: tools/setup torch")
    if not has_own_machines(bed):
        return {"PYTHON": sys.executable}
    place = bed.shared / "torch-python"
    if not place.exists():
        _copy(place.with_suffix(".new"))
        place.with_suffix(".new").rename(place)
    return {"PYTHON": str(place / "bin" / "python3"), "LD_LIBRARY_PATH": str(place / "lib")}


def _copy(place: Path) -> None:
    """Of links where it can be: it is a gigabyte."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    mine = place / "lib" / stdlib.name
    skipped = shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__")
    shutil.copytree(stdlib, mine, copy_function=_link, ignore=skipped)
    for library in Path(sys.base_prefix, "lib").glob("libpython3*"):
        _link(library, place / "lib" / library.name)
    _link(Path(sys.executable).resolve(), place / "bin" / "python3")
    packages = mine / "site-packages"
    for package in _needed(distribution("torch"), distribution("numpy"), distribution(_OURS)):
        for file in package.files or ():
            if ".." not in file.parts and (found := Path(str(file.locate()))).is_file():
                _link(found, packages / file)
    shutil.copytree(Path(steward.__file__).parent, packages / "steward", dirs_exist_ok=True)


def _needed(*packages: Distribution) -> Iterator[Distribution]:
    """These, and what they require here; of Steward's package, its module for jobs requires nothing."""
    seen, left = set[str](), list(packages)
    while left:
        package = left.pop()
        if package.name in seen:
            continue
        seen.add(package.name)
        yield package
        for words in package.requires or () if package.name != _OURS else ():
            if "extra ==" in words:
                continue
            try:
                left.append(distribution(re.split(r"[^\w.-]", words, maxsplit=1)[0]))
            except PackageNotFoundError:
                continue  # for another system


def _link(source: str | Path, target: str | Path) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
