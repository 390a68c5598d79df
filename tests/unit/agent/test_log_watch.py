"""Which files of a job with rules are read, when, and what of it is said."""

import asyncio
from dataclasses import dataclass

from steward.adapters.node.step_walk import RankName, StepLook, StepProcess
from steward.adapters.node.stepds import Stepd
from steward.adapters.offload import Threads
from steward.adapters.proc import ProcessKey
from steward.agent.log_watch import EVERY_S, MISSES, LogWatch
from steward.model.ids import JobId
from steward.model.job_sight import LogState, LogWord
from tests.fakes.output_files import RULES, FakeFiles

J7 = JobId(7)


def a_step(name: str, *pids: int, began_s: float = 0.0, job: int = 7) -> StepLook:
    root = ProcessKey(pid=hash((name, job)) % 1000 + 5000, started=int(began_s * 100))
    processes = (StepProcess(key=ProcessKey(pid=pid, started=1), parent=root.pid, state="S", cpu_s=1.0) for pid in pids)
    return StepLook(stepd=Stepd(process=root, job=JobId(job), step=name, began=0.0), processes=tuple(processes))


@dataclass(kw_only=True)
class Bench:
    files: FakeFiles
    steps: list[StepLook]
    path: str = "/rules.json"
    now: float = 10.0

    def __post_init__(self) -> None:
        self.watch = LogWatch(self.files, threads=lambda: Threads(1))

    def until(self, at: float) -> "Bench":
        while self.now <= at:
            keys = [one.key for step in self.steps for one in step.processes]
            names = {key: RankName(number=key.pid % 100, is_task=True, rules=self.path) for key in keys}
            asyncio.run(self.watch.turn(self.steps, names, dict.fromkeys(keys, 1000), self.now))
            self.now += 15.0
        return self

    def said(self, step: str = "batch") -> list[LogWord]:
        return list(self.watch.words(J7, step, self.now))


def states(words: list[LogWord]) -> list[LogState]:
    return [word.state for word in words]


def a_script(**files: object) -> Bench:
    return Bench(files=FakeFiles(outputs={100: "/out"}, **files), steps=[a_step("batch", 100)])  # type: ignore[arg-type]


def test_a_line_that_does_not_come_again_is_said_with_its_time() -> None:
    bench = a_script(lines={"/out": 1}).until(290.0)
    assert states(bench.said()) == [LogState.WATCHED]
    watched, late = bench.until(400.0).said()
    assert (watched.text, late.rule, late.rank) == ("1 rule", "steps", None)
    assert late.for_s == bench.now - 10.0


def test_without_the_variable_nothing_is_read() -> None:
    bench = a_script()
    bench.path = ""
    bench.until(300.0)
    assert (bench.said(), bench.files.read) == ([], [])


def test_files_are_looked_at_every_half_minute() -> None:
    bench = a_script().until(310.0)
    assert len(bench.files.read) == 300.0 // EVERY_S + 1


def test_files_that_tasks_write_themselves_count_and_the_scripts_no_more() -> None:
    bench = a_script()
    bench.files.outputs |= {201: "/out.1", 202: "/out.2"}
    bench.files.lines = {"/out.1": 1, "/out.2": 1}
    bench.steps.append(a_step("0", 201, 202))
    bench.until(300.0)
    bench.files.lines = {"/out.2": 1}
    bench.until(370.0)
    assert bench.said() == []
    late = bench.said("0")[1]
    assert (late.state, late.rank) == (LogState.LATE, 1)
    del bench.steps[1]
    assert bench.until(2000.0).files.read[-1] != ["/proc/100/fd/1"]


def test_rules_that_cannot_be_used_are_said_and_read_again() -> None:
    bench = a_script(rules="{").until(60.0)
    (word,) = bench.said()
    assert (word.state, word.rule) == (LogState.BROKEN, "")
    assert word.text.startswith("/rules.json: it is no JSON")
    bench.files.rules = RULES
    assert states(bench.until(120.0).said()) == [LogState.WATCHED]


def test_a_file_that_is_not_there_is_said() -> None:
    bench = a_script()
    bench.path = "/other.json"
    (word,) = bench.until(60.0).said()
    assert word.text == "/other.json: No such file or directory"


def test_a_pattern_that_is_none_is_said_and_the_others_hold() -> None:
    bench = a_script(bad={0: "missing )"}).until(600.0)
    word = bench.said()[1]
    assert (word.state, word.rule, word.text) == (LogState.BROKEN, "steps", "its pattern is none: missing )")


def test_output_that_is_no_file_is_said() -> None:
    bench = a_script()
    bench.files.outputs = {}
    assert [word.text for word in bench.until(60.0).said()] == ["its output is no file"]


def test_rules_that_are_off_say_nothing() -> None:
    assert a_script(rules='{"enabled": false}').until(600.0).said() == []


def test_looks_that_are_not_over_in_time_judge_nothing_and_are_said_in_the_end() -> None:
    bench = a_script(hangs=True)
    bench.until(10.0 + (MISSES - 2) * EVERY_S)
    assert bench.said() == []
    (word,) = bench.until(10.0 + MISSES * EVERY_S).said()
    assert (word.state, "not looked at in time" in word.text) == (LogState.BROKEN, True)
    bench.files.hangs = False
    assert states(bench.until(400.0).said()) == [LogState.WATCHED]
