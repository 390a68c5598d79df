"""`make tested`: the README's table of what was tested, from the results of the last `make test-all` in .results.

End-to-end stories say in their JUnit files which cluster they ran on (tests/e2e/conftest.py); a provider was tested
when its contract suite passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(".results")
README = Path("README.md")
BEGIN, END = "<!-- tested: made by `make tested` -->", "<!-- /tested -->"
_PROVIDER = re.compile(r"tests\.contract\.test_provider_(?P<name>\w+?)(\.|$)")
_NOT_A_SITES = ("fake",)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """What a story ran on."""

    slurm: str
    system: str
    bed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test of a JUnit file. `place` is None for tests that need no cluster."""

    suite: str
    place: Place | None
    passed: bool
    skipped: bool


def cases_in(files: Iterable[Path]) -> Iterator[Case]:
    for file in files:
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            said = {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
            named = all(key in said for key in ("slurm", "os", "bed"))
            yield Case(
                suite=case.get("classname", ""),
                place=Place(slurm=said["slurm"], system=said["os"], bed=said["bed"]) if named else None,
                passed=not any(case.find(word) is not None for word in ("failure", "error", "skipped")),
                skipped=case.find("skipped") is not None,
            )


def table(cases: Sequence[Case]) -> str:
    """Markdown. Raises ValueError where no story says what it ran on."""
    told = [case for case in cases if not case.skipped]
    places = sorted({case.place for case in told if case.place})
    if not places:
        raise ValueError("no result of an end-to-end story: run `make test-all` first")
    lines = ["| Slurm | System | Test bed | Stories passed |", "|---|---|---|---|"]
    for place in places:
        here = [case.passed for case in told if case.place == place]
        lines.append(f"| {place.slurm} | {place.system} | {place.bed} | {sum(here)} of {len(here)} |")
    return "\n".join([*lines, "", f"Providers whose contract suite passed: {', '.join(providers(told)) or 'none'}."])


def providers(cases: Iterable[Case]) -> list[str]:
    """Those of which every test passed."""
    found: dict[str, bool] = {}
    for case in cases:
        if match := _PROVIDER.match(case.suite):
            found[match["name"]] = found.get(match["name"], True) and case.passed
    return sorted(f"`{name}`" for name, passed in found.items() if passed and name not in _NOT_A_SITES)


def filled(page: str, text: str) -> str:
    """The page with `text` between its two marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def main() -> int:
    try:
        README.write_text(filled(README.read_text(), table(list(cases_in(sorted(RESULTS.glob("*.xml")))))))
    except (OSError, ValueError, ElementTree.ParseError) as error:
        print(f"tested: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
