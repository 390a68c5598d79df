"""Runs the stages of `make test`, `make landing`, `make test-all`: each with a time limit, one summary at the end.

usage: python3 tools/stages.py LINE [// LINE ...]     lines run beside each other, at most two for each processor
       LINE is [nice] [after=NAME] NAME:MINUTES ...  its stages one after the other, each a target of the Makefile;
                                                     a line that is `nice` has what the others leave of the processors,
                                                     and a stage after `after=NAME` waits until that one is over

A stage that fails stops neither the others nor those after it. What a stage writes goes to .results/NAME.log; shown
are its last line, or where it failed the end of it. Test runners leave their counts as JUnit files in $STEWARD_RESULTS,
copied to .results at the end (`make tested` reads them). The summary names what failed and why, its last line adds the
counts up (`N passed, N failed, N skipped`), and the exit status is 0 only when every stage passed.

A test that fails runs once more, alone, when all lines are over (tests/again.py; to .results/NAME.again.log). One that
passes then is shown at the end with what both tries said, and is in .results/flaky.json; up to three of them in a run
are forgiven.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from uuid import uuid4

import left_behind

_GRACE_S = 30.0
_LOOK_S = 0.1
_NAMED_FAILURES = 10
_SAID = 1500
"""Characters of what a failed test said."""
_ENDS_OF_LOGS = 6000
"""Characters of what a test bed's logs ended with."""
_NICENESS = 7
"""Of a nice line, which gets a sixth of a processor that both want: much less, and a test that waits for its own
processes waits for seconds."""
_LAST_LINES = 40
"""Of a stage that failed."""
LOGS = Path(".results")
_FORGIVEN = 3
"""Flaky tests of one run."""
_MARK = "STEWARD_STAGES"
"""In the environment of all that we start, and of nothing else: a test of this program runs inside of another run."""
_AGAIN = "STEWARD_AGAIN"
"""In the environment of a second run (tests/again.py)."""
_LINES_FOR_EACH = 2
"""Lines at once for each processor that we may use: with more, stories wait for their own clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    name: str
    limit_s: float
    niceness: int = 0
    after: str = ""
    """The stage of another line that is over before it begins."""
    is_second: bool = False
    """Runs again what failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    stage: Stage
    text: str
    took_s: float

    @property
    def is_good(self) -> bool:
        return self.text.startswith("passed")


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
        print(f"=== {stage.name} begins (at most {stage.limit_s / 60:g} min): {log_of(stage)}", flush=True)
        if stage.is_second:
            env = {**env, _AGAIN: "1"}
        command = ["nice", "-n", str(stage.niceness), "make", "--no-print-directory", stage.name]
        with log_of(stage).open("wb") as log:
            process = subprocess.Popen(command, env=env, start_new_session=True, stdout=log, stderr=log)
        _yield_to_others(process.pid, stage.niceness)
        return Running(stage=stage, process=process, began=time.monotonic())

    def outcome(self) -> Outcome | None:
        """None while it runs within its limit."""
        took_s = time.monotonic() - self.began
        status = self.process.poll()
        if status is not None:
            text = f"failed ({status})" if status else "passed the second time" if self.stage.is_second else "passed"
            return Outcome(stage=self.stage, text=text, took_s=took_s)
        if took_s < self.stage.limit_s:
            return None
        end_sessions([self.process])
        return Outcome(stage=self.stage, text=f"took longer than {self.stage.limit_s / 60:g} min", took_s=took_s)


def _yield_to_others(pid: int, niceness: int) -> None:
    """Between sessions Linux shares the processors evenly, whatever is nice in them: the whole session is to be nice
    (sched(7), the autogroup feature)."""
    if niceness:
        with suppress(OSError):  # no such feature here, or it is over already
            Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


def lines_of(words: Iterable[str]) -> list[deque[Stage]]:
    """What is to run beside each other: each line's stages in their order. Raises ValueError for a stage that would
    wait for one that is not named before it: it could wait for ever."""
    lines: list[deque[Stage]] = [deque()]
    niceness, after = 0, ""
    for word in words:
        if word == "//":
            lines.append(deque())
            niceness, after = 0, ""
        elif word == "nice":
            niceness = _NICENESS
        elif word.startswith("after="):
            after = word.removeprefix("after=")
            if all(after != stage.name for line in lines for stage in line):
                raise ValueError(f"{word}: no stage of that name comes before it")
        else:
            name, _, minutes = word.partition(":")
            lines[-1].append(Stage(name=name, limit_s=float(minutes) * 60.0, niceness=niceness, after=after))
            after = ""
    return [line for line in lines if line]


class EndAsked:
    """An interrupt or a SIGTERM is noted and heeded between two looks: raised at once, it could come while a stage is
    started, and that stage would not be ended."""

    def __init__(self) -> None:
        self._is_asked = False
        # Started with `&` by a script we ignore interrupts, and so would what we start: no stage could end in order.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True

    def heed(self) -> None:
        """Raises KeyboardInterrupt when we were asked to end."""
        if self._is_asked:
            raise KeyboardInterrupt


def run_lines(lines: list[deque[Stage]], env: dict[str, str], end_asked: EndAsked, at_once: int) -> list[Outcome]:
    """All of them to their end, `at_once` lines at a time."""
    waiting = list(lines)
    running: list[tuple[deque[Stage], Running]] = []
    outcomes: list[Outcome] = []
    try:
        while running or waiting:
            while len(running) < at_once and (line := _next(waiting, outcomes)) is not None:
                waiting.remove(line)
                running.append((line, Running.start(line.popleft(), env)))
            for place in list(running):
                line, one = place
                if (outcome := one.outcome()) is None:
                    continue
                running.remove(place)
                outcomes.append(outcome)
                show(outcome)
                if line:
                    waiting.insert(0, line)
            time.sleep(_LOOK_S)
            end_asked.heed()
    finally:
        if running:  # we were asked to end: what a test bed had no time to take down is known by its mark
            end_sessions([one.process for _, one in running])
            for _, one in running:
                show(Outcome(stage=one.stage, text="ended by us", took_s=time.monotonic() - one.began))
            left_behind.end(set(left_behind.marked(env[_MARK], _MARK)))
    return outcomes


def _next(waiting: Iterable[deque[Stage]], outcomes: Iterable[Outcome]) -> deque[Stage] | None:
    """The first line that need not wait for a stage of another."""
    over = {"", *(outcome.stage.name for outcome in outcomes)}
    return next((line for line in waiting if line[0].after in over), None)


def run_again(outcomes: Iterable[Outcome], env: dict[str, str], end_asked: EndAsked) -> list[Outcome]:
    """Run once more, one at a time, those that failed by a few tests; all outcomes, the second ones in their places."""
    results = Path(env["STEWARD_RESULTS"])
    first = list(outcomes)
    again = deque(
        replace(one.stage, niceness=0, after="", is_second=True)
        for one in first
        if not one.is_good and any(results.glob(f"{one.stage.name}.*again.json"))
    )
    second = {one.stage.name: one for one in run_lines([again] if again else [], env, end_asked, 1)}
    return [second.get(one.stage.name, one) for one in first]


def log_of(stage: Stage) -> Path:
    return LOGS / (f"{stage.name}.again.log" if stage.is_second else f"{stage.name}.log")


def show(outcome: Outcome) -> None:
    """How it ended: its last line, or where it failed its last ones."""
    print(f"=== {outcome.stage.name} {outcome.text} after {outcome.took_s:.0f} s")
    lines = log_of(outcome.stage).read_text(errors="replace").splitlines()
    print("\n".join(lines[-1:] if outcome.is_good else lines[-_LAST_LINES:]), flush=True)


def end_sessions(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask first, so that test beds are taken down; then make sure. All at once: each may need its whole patience."""
    for number, patience_s in ((signal.SIGINT, _GRACE_S), (signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        processes = [process for process in processes if process.poll() is None]
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        give_up = time.monotonic() + patience_s
        while any(process.poll() is None for process in processes) and time.monotonic() < give_up:
            time.sleep(_LOOK_S)


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
    """Print each test that passed only the second time, with both outputs, and keep them; how many they are."""
    flaky = [one for file in sorted(folder.glob("*.flaky.json")) for one in json.loads(file.read_text())]
    (LOGS / "flaky.json").write_text(json.dumps(flaky, indent=1))
    for one in flaky:
        print(f"\n=== FLAKY {one['test']}\n--- the first try failed:\n{one['failed'][-_SAID:]}")
        print(f"--- the second passed:\n{one['passed'][-_SAID:]}")
        print(f"--- its cluster's logs after the first try:\n{one['logs'][-_ENDS_OF_LOGS:]}")
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
    end_asked = EndAsked()
    LOGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="steward-results-") as folder:
        env = {**os.environ, _MARK: str(uuid4()), "STEWARD_RESULTS": folder}
        env.pop(_AGAIN, None)
        at_once = _LINES_FOR_EACH * len(os.sched_getaffinity(0))
        outcomes = run_again(run_lines(lines_of(words), env, end_asked, at_once), env, end_asked)
        files = sorted(Path(folder).glob("*.xml"))
        name_failures(files)
        for file in files:
            shutil.copy(file, LOGS / file.name)  # `make tested` reads them
        counts = sum((counts_in(file) for file in files), Counts())
        flaky = show_flaky(Path(folder))
    return close(outcomes, counts, flaky)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
