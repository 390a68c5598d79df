#!/usr/bin/env python3
"""What the package is made of, in figures: modules, lines, who imports whom, settings. `--small` lists what could move
into its only user; `--long` warns of files that may be two things, in the package, the tests and the tools; `--twice`
lists class names with two meanings.

usage: python -m tools.house [--small | --long | --twice]        (in the environment of `make setup`)
"""

import argparse
import ast
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "daemon" / "steward"
SMALL = 60
"""Lines of a module that may as well stand in its only user."""
LONG = 500
"""Lines of a file from which on it is worth a look whether it is one thing. No law: what belongs together stands
together."""


@dataclass(kw_only=True)
class Module:
    """A module of the package: `importers` are the modules of the package that import it."""

    name: str
    lines: int
    import_lines: int
    imports: frozenset[str]
    importers: set[str] = field(default_factory=set)


def read(package: Path) -> dict[str, Module]:
    """Every module by its dotted name. Empty `__init__` files do not count."""
    found = {name: module for name, module in map(_module, _files(package)) if module.lines > 1}
    for module in found.values():
        for name in module.imports & found.keys() - {module.name}:
            found[name].importers.add(module.name)
    return found


def _files(package: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(package.rglob("*.py")):
        yield ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"), path


def _module(named: tuple[str, Path]) -> tuple[str, Module]:
    name, path = named
    text = path.read_text(encoding="utf-8")
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    module = Module(
        name=name,
        lines=len(text.splitlines()),
        import_lines=sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes),
        imports=frozenset(target for node in nodes for target in _targets(node)),
    )
    return name, module


def _targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What may be meant: `from a.b import c` is of `a.b`, or of the module `a.b.c`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def figures(modules: dict[str, Module]) -> Iterator[tuple[str, str]]:
    lines = [module.lines for module in modules.values()]
    alone = sum(len(module.importers) == 1 for module in modules.values())
    imports = sum(module.import_lines for module in modules.values())
    yield "modules", f"{len(modules)}"
    yield "lines", f"{sum(lines)}"
    yield "lines of the median module", f"{statistics.median(lines):.0f}"
    yield "modules below 100 lines", _share(sum(count < 100 for count in lines), len(lines))
    yield "modules with one importer", _share(alone, len(modules))
    yield "lines that import", _share(imports, sum(lines))
    yield "rows in docs/config.md", f"{_settings()}"
    yield "class names with two meanings", f"{len(twice())}"
    yield "docstrings that ruff D401 finds", f"{_not_imperative()}"
    yield "files that the walk-through names", f"{_walked()}"
    yield "modules with two subjects", f"{len(two_subjects())}"
    yield "pairs of policy rooms in a circle", ", ".join(circles(modules)) or "none"
    yield "lines with words for unreleased versions", f"{len(_grep(_FORMER, 'daemon'))}"
    yield "lines of test beds and demo in the package", f"{_bed_lines(modules)}"
    yield "lines of the tests", f"{sum(_lines(path) for path in (ROOT / 'tests').rglob('*.py'))}"
    for kind, pattern in _TOUCHED.items():
        touched = _grep(pattern, "-l", *_WHERE)
        of_package = sum(path.startswith("daemon/") for path in touched)
        yield f"files that name an example {kind}", f"{len(touched)}, {of_package} of the package ({pattern})"


_FORMER = r"earlier version|older (head|agent)|former_settings"
_BED_FOLDERS = (
    "steward.testbed",
    "steward.demo",
    "steward.adapters.providers.local",
    "steward.adapters.providers.docker",
)
_TOUCHED = {
    "action": r"SetFeature|set_feature",
    "agent setting": r"\bbad_samples\b",
    "read of the API": r"checks/trials|trials_view",
    "health check": r"\bcpu\.governor\b",
}
"""For each kind of thing that is added now and then, one that is there: it is named in the files that it touched."""
_WHERE = ("daemon", "reader", "spank", "tests", "docs", "CHANGELOG.md")


def _grep(pattern: str, *words: str) -> list[str]:
    """Return what git finds in the checkout: lines, or with `-l` files."""
    options, paths = [word for word in words if word[0] == "-"], [word for word in words if word[0] != "-"]
    argv = ["git", "-C", str(ROOT), "grep", *options, "-iE", pattern, "--", *paths]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()


def _bed_lines(modules: dict[str, Module]) -> int:
    return sum(module.lines for name, module in modules.items() if name.startswith(_BED_FOLDERS))


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)"


def _settings() -> int:
    page = PACKAGE.parents[1] / "docs" / "config.md"
    return sum(line.startswith("| `") for line in page.read_text(encoding="utf-8").splitlines())


def _walked() -> int:
    """Count the files that a reader of "Follow one fault" in docs/architecture.md opens."""
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    return len(set(re.findall(r"`([a-z_/]+\.py)", page.split("## Follow one fault")[1].split("\n## ")[0])))


def twice() -> dict[str, list[str]]:
    """Return the names of public classes that more than one module defines, with those modules."""
    found: dict[str, list[str]] = {}
    for name, path in _files(PACKAGE):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name.removeprefix("steward."))
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


_TWO_SUBJECTS = re.compile(r"`[^`]+` and `|[^.:]*;")
"""A docstring that begins with two commands, or whose first clause is two clauses."""


def two_subjects() -> list[str]:
    """Return the modules whose docstring names two subjects."""
    docs = ((name, ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))) for name, path in _files(PACKAGE))
    return [name for name, doc in docs if doc and _TWO_SUBJECTS.match(doc)]


def circles(modules: dict[str, Module]) -> list[str]:
    """Return the pairs of rooms of the policy that import each other."""
    uses: set[tuple[str, str]] = set()
    for module in modules.values():
        for name in module.imports & modules.keys():
            here, there = _room(module.name), _room(name)
            if here and there and here != there:
                uses.add((here, there))
    return [f"{a}-{b}" for a, b in sorted(uses) if a < b and (b, a) in uses]


def _room(module: str) -> str:
    """Return the room of the policy that a module is in; empty for a module of no room."""
    parts = module.split(".")
    return parts[2] if len(parts) > 3 and parts[1] == "policy" else ""


def _not_imperative() -> int:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "D401",
        "--output-format",
        "concise",
        str(PACKAGE),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    return printed.stdout.count(" D401 ")


def rooms(modules: dict[str, Module]) -> Iterator[tuple[str, int, int]]:
    """Folder, modules, lines; the largest first."""
    counts: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for module in modules.values():
        room = module.name.rpartition(".")[0] or module.name
        counts[room] += 1
        lines[room] += module.lines
    yield from ((room, counts[room], lines[room]) for room, _ in counts.most_common())


def small(modules: dict[str, Module]) -> Iterator[tuple[int, str, str]]:
    """Lines, module, its only importer."""
    for module in sorted(modules.values(), key=lambda one: one.lines):
        if len(module.importers) == 1 and module.lines <= SMALL:
            yield module.lines, module.name, min(module.importers)


def long() -> Iterator[tuple[int, Path]]:
    """Lines, file."""
    root = PACKAGE.parents[1]
    for folder in (PACKAGE, root / "tests", root / "tools", root / "examples"):
        for path in sorted(folder.rglob("*.py")):
            if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONG:
                yield lines, path.relative_to(root)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the package is made of, in figures.")
    parser.add_argument("--small", action="store_true", help=f"modules of <= {SMALL} lines with one importer")
    parser.add_argument("--long", action="store_true", help=f"files of more than {LONG} lines")
    parser.add_argument("--twice", action="store_true", help="class names with two meanings")
    asked = parser.parse_args()
    if asked.twice:
        for name, places in twice().items():
            print(f"{name:24}{', '.join(places)}")
        return
    if asked.long:
        for lines, path in long():
            print(f"warning: {path}: {lines} lines; is it one thing?")
        return
    modules = read(PACKAGE)
    if asked.small:
        for lines, name, importer in small(modules):
            print(f"{lines:4}  {name}  <-  {importer}")
        return
    for name, value in figures(modules):
        print(f"{name:44}{value}")
    print(f"\n{'folder':40}{'modules':>8}{'lines':>8}")
    for room, count, lines in rooms(modules):
        print(f"{room:40}{count:8}{lines:8}")


if __name__ == "__main__":
    main()
