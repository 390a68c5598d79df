"""Runs the stages of `make test` one after the other, each with a time limit, and closes with one summary.

usage: python3 tools/stages.py NAME:MINUTES ...       each NAME is a target of the Makefile
       NAME:MINUTES+NAME:MINUTES                      these run beside each other; their output is shown as they end

A stage that fails does not stop the others. Test runners leave their counts as JUnit files in $STEWARD_RESULTS; the
summary names what failed, its last line adds the counts up (`N passed, N failed, N skipped`), and the exit status is 0
only when every stage passed.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_GRACE_S = 30.0
_LOOK_S = 0.1
_NAMED_FAILURES = 10
_LINE = 200


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A stage in a session of its own, so that the limit ends all of it. No `output`: it goes where ours goes."""

    stage: Stage
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    began: float

    @staticmethod
    def start(stage: Stage, env: dict[str, str], output: IO[bytes] | None) -> "Running":
        command = ["make", "--no-print-directory", stage.name]
        process = subprocess.Popen(command, env=env, start_new_session=True, stdout=output, stderr=output)
        return Running(stage=stage, process=process, output=output, began=time.monotonic())

    def outcome(self) -> Outcome | None:
        """None while it runs within its limit."""
        took_s = time.monotonic() - self.began
        status = self.process.poll()
        if status is not None:
            return Outcome(stage=self.stage, text="passed" if status == 0 else f"failed ({status})", took_s=took_s)
        if took_s < self.stage.limit_s:
            return None
        end_session(self.process)
        return Outcome(stage=self.stage, text=f"took longer than {self.stage.limit_s / 60:g} min", took_s=took_s)


def run_together(stages: list[Stage], env: dict[str, str]) -> list[Outcome]:
    """One stage with its output as it comes; several at once, the output of each when it has ended."""
    alone = len(stages) == 1
    print(title(stages[0]) if alone else f"\n=== {' and '.join(s.name for s in stages)} run together", flush=True)
    with ExitStack() as files:
        running = [
            Running.start(stage, env, None if alone else files.enter_context(tempfile.TemporaryFile()))
            for stage in stages
        ]
        try:
            return wait(running)
        except KeyboardInterrupt:
            for one in running:
                end_session(one.process)
            raise


def wait(running: list[Running]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while running:
        for one in list(running):
            if (outcome := one.outcome()) is not None:
                running.remove(one)
                outcomes.append(outcome)
                show(one)
        time.sleep(_LOOK_S)
    return outcomes


def show(ended: Running) -> None:
    """What it wrote, where that was kept."""
    if ended.output is not None:
        ended.output.seek(0)
        print(title(ended.stage), flush=True)
        shutil.copyfileobj(ended.output, sys.stdout.buffer)
        sys.stdout.flush()


def title(stage: Stage) -> str:
    return f"\n=== {stage.name} (at most {stage.limit_s / 60:g} min)"


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


def failures_in(file: Path) -> Iterator[str]:
    """Which tests of one JUnit file failed, each with the first line of what it said."""
    try:
        cases = list(ElementTree.parse(file).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        yield f"{file.stem}: its results cannot be read: {error}"
        return
    for case in cases:
        for said in (*case.findall("failure"), *case.findall("error")):
            first = (said.get("message") or "").partition("\n")[0]
            yield f"{file.stem}: {case.get('classname')}.{case.get('name')}: {first}"[:_LINE]


def name_failures(files: Iterable[Path]) -> None:
    failures = [failure for file in files for failure in failures_in(file)]
    for failure in failures[:_NAMED_FAILURES]:
        print(f"failed in {failure}")
    if (left := len(failures) - _NAMED_FAILURES) > 0:
        print(f"... and {left} more")


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
    # Started with `&` by a script we ignore interrupts, and so would what we start: no stage could end in order.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = [[Stage.parse(part) for part in word.split("+")] for word in words]
    with tempfile.TemporaryDirectory(prefix="steward-results-") as folder:
        env = {**os.environ, "STEWARD_RESULTS": folder}
        outcomes = [outcome for stages in steps for outcome in run_together(stages, env)]
        files = sorted(Path(folder).glob("*.xml"))
        name_failures(files)
        counts = sum((counts_in(file) for file in files), Counts())
    return close(outcomes, counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
