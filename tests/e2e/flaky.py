"""With `-p tests.e2e.flaky --reruns 1` a story that fails is told once more by itself. One that passes then is FLAKY:
shown at the end with what both tries said, and left as data beside the JUnit file (`NAME.flaky.json`), where
`tools/stages.py` counts it. Of one that fails again the first try is shown, too: pytest itself shows the last."""

import json
from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

_SAID = 3000
"""The most characters of a first try whose second is shown whole."""
_CAPTURED = ("Captured stdout ", "Captured stderr ", "Captured log ")
_TRY = pytest.StashKey[pytest.TestReport]()
RERUN = "rerun"
"""What pytest-rerunfailures calls the outcome of a try that is not the last."""


@dataclass(frozen=True, slots=True)
class Flaky:
    """What the two tries of a story said. `logs`: the ends of its cluster's, after the first one."""

    test: str
    failed: str
    passed: str
    logs: str = ""


class FlakyStories:
    """Collects what failed once, and what the first try of those said that failed for good."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._failed: dict[str, Flaky] = {}
        self._flaky: list[Flaky] = []
        self._twice: list[Flaky] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == RERUN:
            logs = "\n".join(f"[{title}]\n{text}" for title, text in logs_in(report))
            self._failed[report.nodeid] = Flaky(test=report.nodeid, failed=said_by(report), passed="", logs=logs)
        elif report.failed and report.nodeid in self._failed:
            self._twice.append(self._failed.pop(report.nodeid))
        elif report.when == "call" and report.passed and report.nodeid in self._failed:
            self._flaky.append(replace(self._failed.pop(report.nodeid), passed=said_by(report)))

    def pytest_sessionfinish(self) -> None:
        if self._file is not None and self._flaky:
            self._file.write_text(json.dumps([asdict(one) for one in self._flaky], indent=1))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for one in self._flaky:
            terminalreporter.section(f"FLAKY {one.test}", sep="_")
            terminalreporter.line(f"--- the first try failed:\n{one.failed}\n--- the second passed:\n{one.passed}")
        for one in self._twice:
            terminalreporter.section(f"FAILED TWICE {one.test}", sep="_")
            terminalreporter.line(f"--- the first try:\n{one.failed[-_SAID:]}\n{one.logs}")


def said_by(report: pytest.TestReport) -> str:
    """Why it failed, if it did, and all that was captured of it."""
    captured = [(title, text) for title, text in report.sections if title.startswith(_CAPTURED)]
    return "\n".join([report.longreprtext, *(f"[{title}]\n{text}" for title, text in captured)]).strip()


def logs_in(report: pytest.TestReport) -> list[tuple[str, str]]:
    """What fixtures added to it (tests/e2e/conftest.py), without what pytest captured."""
    return [
        (title, text)
        for title, text in report.sections
        if title.endswith("teardown") and not title.startswith(_CAPTURED)
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What fixtures add at their end is put into the report of the try itself, which is told after that."""
    report = yield
    if report.when == "call":
        item.stash[_TRY] = report
    elif report.when == "teardown" and (of_try := item.stash.get(_TRY, None)) is not None and of_try.failed:
        of_try.sections += logs_in(report)
    return report


def file_beside(junit: str | None) -> Path | None:
    """Where the data goes; None where no JUnit file is asked for."""
    return Path(junit).with_suffix(".flaky.json") if junit else None


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # where several processes share the stories, the one that hears of all
        config.pluginmanager.register(FlakyStories(file_beside(config.getoption("xmlpath"))))
