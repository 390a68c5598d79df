"""Run a test that failed once more, alone, and say of one that passes then that it is FLAKY.

With `-p tests.again` a run that fails leaves, beside its JUnit file, which tests failed and what they said
(`NAME.again.json`). The same command with STEWARD_AGAIN in its environment runs only those, one after the other in one
process, and passes when all of them pass: the JUnit file is put right, and what both tries said is shown and left as
data (`NAME.flaky.json`). The Makefile starts that second run; `tools/stages.py` does so when all else is over.
"""

import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

SECOND = "STEWARD_AGAIN"
MOST = 3
"""Failed tests of one run that are run again: more than that have a cause that a second try only hides."""
_SAID = 3000
"""The most characters of a first try whose second is shown whole."""
_CAPTURED = ("Captured stdout ", "Captured stderr ", "Captured log ")


@dataclass(frozen=True, slots=True)
class Twice:
    """What the two tries of a test said. `logs`: the ends of its cluster's, after the first one."""

    test: str
    failed: str = ""
    passed: str = ""
    logs: str = ""


class FirstRun:
    """Keep what failed, and what it said."""

    def __init__(self, junit: Path) -> None:
        self._file = junit.with_suffix(".again.json")
        for suffix in (".again.json", ".flaky.json"):
            junit.with_suffix(suffix).unlink(missing_ok=True)
        self._failed: dict[str, Twice] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self._failed.get(report.nodeid, Twice(report.nodeid))
        if report.failed:
            known = replace(known, failed=f"{known.failed}\n{said_by(report)}".strip())
        if known.failed:
            self._failed[report.nodeid] = replace(known, logs=known.logs or logs_in(report))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Of a run that failed otherwise than by a few tests no test is named: there is no second one."""
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return
        is_few = exitstatus == pytest.ExitCode.TESTS_FAILED and len(self._failed) <= MOST
        failed = list(self._failed.values()) if is_few else []
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps([asdict(one) for one in failed], indent=1))


class SecondRun:
    """Tell what failed twice from what is flaky."""

    def __init__(self, junit: Path, failed: Sequence[Twice] | None) -> None:
        self._junit = junit
        self._first = failed
        self._now = {one.test: one for one in failed or ()}
        self._bad: set[str] = set()

    def pytest_configure(self, config: pytest.Config) -> None:
        """Name the tests only here, where each word is known to be a path and no option's value."""
        failed = [str(config.rootpath / one.test) for one in self._first or ()]
        config.args = failed or [__file__]  # no test is in here

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._bad.add(report.nodeid)
        elif report.when == "call" and report.passed and report.nodeid in self._now:
            self._now[report.nodeid] = replace(self._now[report.nodeid], passed=said_by(report) or "(nothing)")

    @property
    def _flaky(self) -> list[Twice]:
        return [one for one in self._now.values() if one.passed and one.test not in self._bad]

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> object:
        result = yield
        is_well = self._first is None or 0 < len(self._first) == len(self._flaky)
        session.exitstatus = pytest.ExitCode.OK if is_well else pytest.ExitCode.TESTS_FAILED
        if self._flaky:
            self._junit.with_suffix(".flaky.json").write_text(
                json.dumps([asdict(one) for one in self._flaky], indent=1)
            )
            put_right(self._junit, second_of(self._junit))
        second_of(self._junit).unlink(missing_ok=True)
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for one in self._flaky:
            terminalreporter.section(f"FLAKY {one.test}", sep="_")
            terminalreporter.line(f"--- the first try failed:\n{one.failed}\n--- the second passed:\n{one.passed}")
        for one in (each for each in self._now.values() if each not in self._flaky):
            terminalreporter.section(f"FAILED TWICE {one.test}", sep="_")
            terminalreporter.line(f"--- the first try:\n{one.failed[-_SAID:]}\n{one.logs}")


def said_by(report: pytest.TestReport) -> str:
    """Return why it failed, if it did, and all that was captured of it."""
    captured = [(title, text) for title, text in report.sections if title.startswith(_CAPTURED)]
    return "\n".join([report.longreprtext, *(f"[{title}]\n{text}" for title, text in captured)]).strip()


def logs_in(report: pytest.TestReport) -> str:
    """Return what fixtures added to it at their end (tests/e2e/conftest.py), without what pytest captured."""
    return "\n".join(
        f"[{title}]\n{text}"
        for title, text in report.sections
        if title.endswith("teardown") and not title.startswith(_CAPTURED)
    )


def second_of(junit: Path) -> Path:
    """Return where the second run writes its own results."""
    return junit.with_suffix(".second")


def put_right(first: Path, second: Path) -> None:
    """Take the failures of tests that passed the second time out of the first run's JUnit file."""
    tree = ElementTree.parse(first)
    passed = {_name(case) for case in ElementTree.parse(second).iter("testcase") if not _failures(case)}
    for case in tree.iter("testcase"):
        for failure in _failures(case) if _name(case) in passed else ():
            case.remove(failure)
    for suite in tree.iter("testsuite"):
        for attribute, tag in (("failures", "failure"), ("errors", "error")):
            suite.set(attribute, str(sum(1 for _ in suite.iter(tag))))
    tree.write(first, encoding="unicode")


def _failures(case: ElementTree.Element) -> list[ElementTree.Element]:
    return [*case.findall("failure"), *case.findall("error")]


def _name(case: ElementTree.Element) -> tuple[str | None, str | None]:
    return case.get("classname"), case.get("name")


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Have the second run run only what failed, in one process."""
    known = early_config.known_args_namespace
    if SECOND not in os.environ or not known.xmlpath:
        return
    junit = Path(known.xmlpath)
    failed = failed_in(junit)
    args += ["-n0", "--dist=no", "-k", "", f"--junitxml={second_of(junit)}"]
    early_config.pluginmanager.register(SecondRun(junit, failed))


def failed_in(junit: Path) -> list[Twice] | None:
    """Return the tests that failed in the first run; None where it passed."""
    try:
        return [Twice(**one) for one in json.loads(junit.with_suffix(".again.json").read_text())]
    except FileNotFoundError:
        return None


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")  # where several processes share the tests, one hears of all
    if not is_worker and SECOND not in os.environ and (junit := config.getoption("xmlpath")):
        config.pluginmanager.register(FirstRun(Path(junit)))
