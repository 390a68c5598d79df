"""The room goes alone to a login host: as one file or as a wheel, with Python 3.9 and nothing else."""

import ast
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.assess.estimate import ASSUMPTIONS
from steward.assess.options import CHOICES
from steward.cli.assess import assess
from tests.builders.assessed import kept
from tools.assess import ROOT, SOURCE, build

FILES = sorted(SOURCE.glob("*.py"))
SINCE_3_10 = {
    "contextlib": {"aclosing", "chdir"},
    "dataclasses": {"KW_ONLY"},
    "datetime": {"UTC"},
    "enum": {"StrEnum", "verify", "member"},
    "functools": set(),
    "itertools": {"pairwise", "batched"},
    "math": {"cbrt", "exp2", "sumprod"},
    "statistics": {"correlation", "linear_regression", "kde"},
    "typing": {"ParamSpec", "TypeAlias", "TypeGuard", "Self", "assert_never", "override", "NotRequired", "Never"},
}
MODULES_SINCE_3_10 = {"tomllib", "zoneinfo_data"}
WORDS_SINCE_3_10 = {"slots", "kw_only", "strict", "weakref_slot", "delete_on_close", "root_dir", "key_bisect"}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(), str(file), feature_version=(3, 9))):
            yield file.name, node


def test_the_room_imports_itself_and_the_standard_library_and_nothing_newer() -> None:
    found = []
    for file, node in nodes():
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = {name.name for name in node.names}
            module = node.module or ""
            if module.partition(".")[0] not in sys.stdlib_module_names or names & SINCE_3_10.get(module, set()):
                found.append(f"{file}: {ast.unparse(node)}")
        if isinstance(node, ast.ImportFrom) and node.level > 1:
            found.append(f"{file}: {ast.unparse(node)}")
        if isinstance(node, ast.Import):
            found += [
                f"{file}: {one.name}" for one in node.names if one.name not in sys.stdlib_module_names - {"tomllib"}
            ]
    assert found == []


def test_no_call_has_a_word_that_python_3_9_does_not_know() -> None:
    called = [(file, node) for file, node in nodes() if isinstance(node, ast.Call)]
    assert [
        f"{file}: {ast.unparse(node)}" for file, node in called if {one.arg for one in node.keywords} & WORDS_SINCE_3_10
    ] == []


def test_every_module_reads_its_annotations_as_text() -> None:
    assert [file.name for file in FILES if "from __future__ import annotations" not in file.read_text()] == [
        "__init__.py"
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"), "1.2.3")


def oldest_python() -> str:
    """Return the oldest Python of this machine that may run it."""
    found = filter(None, map(shutil.which, ("python3.9", "python3.10", "python3.11")))
    works = (one for one in found if subprocess.run([one, "-c", ""], check=False, capture_output=True).returncode == 0)
    return next(works, sys.executable)


def test_the_single_file_runs_without_steward(built: tuple[Path, Path], tmp_path: Path) -> None:
    single, _ = built
    argv = [oldest_python(), "-I", str(single), "--from", str(kept(tmp_path / "kept")), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path)
    assert json.loads(done.stdout)["cluster"] == "hpc"


def test_its_first_lines_are_read_by_an_old_python_too(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        ast.parse(archive.read("__main__.py"), feature_version=(3, 4))


def test_the_wheel_is_whole_and_has_the_command(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        record = archive.read("steward_assess-1.2.3.dist-info/RECORD").decode()
        rows = [line.rsplit(",", 2) for line in record.splitlines()]
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            made = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={made}", len(data))
        assert {name for name, _, _ in rows} == set(archive.namelist())
        points = archive.read("steward_assess-1.2.3.dist-info/entry_points.txt").decode()
    assert "steward-assess = steward_assess.__main__:main" in points


def test_the_command_of_steward_has_the_same_options() -> None:
    assert [option.opts[0] for option in assess.params] == [f"--{one.name}" for one in CHOICES]


def test_the_page_of_the_docs_names_every_option_and_assumption() -> None:
    text = (ROOT / "docs/assess.md").read_text()
    assert [one.name for one in CHOICES if f"--{one.name}" not in text] == []
    assert [one.key for one in ASSUMPTIONS if f"`{one.key}` | {one.low:g} to {one.high:g} {one.unit}" not in text] == []
