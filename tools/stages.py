"""Runs the stages of `make test`, `make test-all`: each with a time limit, one summary at the end.

usage: python3 tools/stages.py NAME:MINUTES ...       each NAME is a target of the Makefile
       NAME:MINUTES+NAME:MINUTES                      these run beside each other

A stage that fails does not stop the others. What a stage writes goes to .results/NAME.log; shown are its last line, or
where it failed the end of it. Test runners leave their counts as JUnit files in $STEWARD_RESULTS; the summary names
what failed and why, its last line adds the counts up (`N passed, N failed, N skipped`), and the exit status is 0 only
when every stage passed.

End-to-end stories are told once more when they fail (tests/e2e/flaky.py). Those that passed then are shown at the end
with what both tries said, and are in .results/flaky.json; up to two of them in a run are forgiven.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_GRACE_S = 30.0
_LOOK_S = 0.1
_NAMED_FAILURES = 10
_SAID = 1500
"""Characters of what a failed test said."""
_LAST_LINES = 40
"""Of a stage that failed."""
LOGS = Path(".results")
_FORGIVEN = 2
"""Flaky stories of one run."""


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
    """A stage in a session of its own, so that the limit ends all of it."""

    stage: Stage
    process: subprocess.Popen[bytes]
    began: float

    @staticmethod
    def start(stage: Stage, env: dict[str, str]) -> "Running":
        command = ["make", "--no-print-directory", stage.name]
        with log_of(stage).open("wb") as log:
            process = subprocess.Popen(command, env=env, start_new_session=True, stdout=log, stderr=log)
        return Running(stage=stage, process=process, began=time.monotonic())

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
    for stage in stages:
        print(f"=== {stage.name} begins (at most {stage.limit_s / 60:g} min): {log_of(stage)}", flush=True)
    running = [Running.start(stage, env) for stage in stages]
    try:
        return wait(running)
    except KeyboardInterrupt:
        for one in running:
            end_session(one.process)
        raise


def log_of(stage: Stage) -> Path:
    return LOGS / f"{stage.name}.log"


def wait(running: list[Running]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while running:
        for one in list(running):
            if (outcome := one.outcome()) is not None:
                running.remove(one)
                outcomes.append(outcome)
                show(outcome)
        time.sleep(_LOOK_S)
    return outcomes


def show(outcome: Outcome) -> None:
    """How it ended: its last line, or where it failed its last ones."""
    print(f"=== {outcome.stage.name} {outcome.text} after {outcome.took_s:.0f} s")
    lines = log_of(outcome.stage).read_text(errors="replace").splitlines()
    print("\n".join(lines[-1:] if outcome.is_good else lines[-_LAST_LINES:]), flush=True)


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
    """Which tests of one JUnit file failed, each with the beginning of what it said."""
    try:
        cases = list(ElementTree.parse(file).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        yield f"{file.stem}: its results cannot be read: {error}"
        return
    for case in cases:
        for said in (*case.findall("failure"), *case.findall("error")):
            yield f"{file.stem}: {case.get('classname')}.{case.get('name')}: {(said.get('message') or '')[:_SAID]}"


def name_failures(files: Iterable[Path]) -> None:
    failures = [failure for file in files for failure in failures_in(file)]
    for failure in failures[:_NAMED_FAILURES]:
        print(f"failed in {failure}")
    if (left := len(failures) - _NAMED_FAILURES) > 0:
        print(f"... and {left} more")


def show_flaky(folder: Path) -> int:
    """Print each story that passed only the second time, with both outputs, and keep them; how many they are."""
    flaky = [one for file in sorted(folder.glob("*.flaky.json")) for one in json.loads(file.read_text())]
    (LOGS / "flaky.json").write_text(json.dumps(flaky, indent=1))
    for one in flaky:
        print(f"\n=== FLAKY {one['test']}\n--- the first try failed:\n{one['failed'][-_SAID:]}")
        print(f"--- the second passed:\n{one['passed'][-_SAID:]}")
    return len(flaky)


def close(outcomes: Iterable[Outcome], counts: Counts, flaky: int) -> int:
    """Print the summary; the exit status."""
    all_of_them = list(outcomes)
    print("\n=== summary", flush=True)
    for outcome in all_of_them:
        print(f"{outcome.stage.name:14} {outcome.took_s:7.1f} s  {outcome.text}")
    bad = sum(not outcome.is_good for outcome in all_of_them)
    failed = counts.failed or bad
    if flaky:
        print(f"{flaky} flaky: .results/flaky.json" + (f", more than {_FORGIVEN}" if flaky > _FORGIVEN else ""))
    if flaky > _FORGIVEN:
        failed += flaky
    print(f"{counts.passed} passed, {failed} failed, {counts.skipped} skipped", flush=True)
    return 1 if failed else 0


def main(words: list[str]) -> int:
    # Started with `&` by a script we ignore interrupts, and so would what we start: no stage could end in order.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    LOGS.mkdir(exist_ok=True)
    steps = [[Stage.parse(part) for part in word.split("+")] for word in words]
    with tempfile.TemporaryDirectory(prefix="steward-results-") as folder:
        env = {**os.environ, "STEWARD_RESULTS": folder}
        outcomes = [outcome for stages in steps for outcome in run_together(stages, env)]
        files = sorted(Path(folder).glob("*.xml"))
        name_failures(files)
        counts = sum((counts_in(file) for file in files), Counts())
        flaky = show_flaky(Path(folder))
    return close(outcomes, counts, flaky)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
