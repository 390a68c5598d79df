"""Runs the stages of `make test` one after the other, each with a time limit, and closes with one summary.

usage: python3 tools/stages.py NAME:MINUTES ...       each NAME is a target of the Makefile

A stage that fails does not stop the others. Test runners leave their counts as JUnit files in $STEWARD_RESULTS; the
last line adds them up (`N passed, N failed, N skipped`) and the exit status is 0 only when every stage passed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_GRACE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    name: str
    limit_s: float

    @staticmethod
    def parse(text: str) -> "Stage":
        name, _, minutes = text.partition(":")
        return Stage(name=name, limit_s=float(minutes) * 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    stage: Stage
    text: str
    took_s: float

    @property
    def is_good(self) -> bool:
        return self.text == "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
        )


def run_stage(stage: Stage, env: dict[str, str]) -> Outcome:
    """The stage in a session of its own, so that the limit ends all of it."""
    print(f"\n=== {stage.name} (at most {stage.limit_s / 60:g} min)", flush=True)
    began = time.monotonic()
    with subprocess.Popen(["make", "--no-print-directory", stage.name], env=env, start_new_session=True) as process:
        try:
            status = process.wait(timeout=stage.limit_s)
            text = "passed" if status == 0 else f"failed ({status})"
        except subprocess.TimeoutExpired:
            end_session(process)
            text = f"took longer than {stage.limit_s / 60:g} min"
        except KeyboardInterrupt:
            end_session(process)
            raise
    return Outcome(stage=stage, text=text, took_s=time.monotonic() - began)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Ask first, so that test beds are taken down; then make sure."""
    for number, patience_s in ((signal.SIGINT, _GRACE_S), (signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
        else:
            return


def counts_in(file: Path) -> Counts:
    """The counts of one JUnit file; an unreadable one counts as one failure."""
    try:
        suites = ElementTree.parse(file).getroot().iter("testsuite")
        numbers = [
            {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")} for suite in suites
        ]
    except (OSError, ElementTree.ParseError):
        return Counts(failed=1)
    failed = sum(number["failures"] + number["errors"] for number in numbers)
    skipped = sum(number["skipped"] for number in numbers)
    return Counts(passed=sum(number["tests"] for number in numbers) - failed - skipped, failed=failed, skipped=skipped)


def close(outcomes: Iterable[Outcome], counts: Counts) -> int:
    """Print the summary; the exit status."""
    all_of_them = list(outcomes)
    print("\n=== summary", flush=True)
    for outcome in all_of_them:
        print(f"{outcome.stage.name:14} {outcome.took_s:7.1f} s  {outcome.text}")
    bad = sum(not outcome.is_good for outcome in all_of_them)
    failed = counts.failed or bad
    print(f"{counts.passed} passed, {failed} failed, {counts.skipped} skipped", flush=True)
    return 1 if failed else 0


def main(words: list[str]) -> int:
    stages = [Stage.parse(word) for word in words]
    with tempfile.TemporaryDirectory(prefix="steward-results-") as folder:
        env = {**os.environ, "STEWARD_RESULTS": folder}
        outcomes = [run_stage(stage, env) for stage in stages]
        counts = sum((counts_in(file) for file in sorted(Path(folder).glob("*.xml"))), Counts())
    return close(outcomes, counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
