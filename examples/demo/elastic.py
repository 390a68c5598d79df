"""The elastic demo: one run that grows, shrinks, grows again, loses a node and goes on, and the proof that its result
is that of a run which nothing happened to."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.demo.measure import Happening, ProgressLog, last
from examples.demo.watch import DemoWatch, Screen
from steward.job.elastic_batch import sample_at
from steward.model.ids import NodeName
from steward.policy.elastic.picture import Stretch, picture
from steward_bed.bed import Bed, BedError
from steward_bed.faults import FaultKind, fault
from steward_bed.wait import ask_head, wait_until

_SOURCES = Path(__file__).resolve().parents[1] / "plain_elastic"
ELASTIC_NODES = 4
_BASE = 2
_BATCH, _LENGTH, _SEED = 48, 4096, 7
"""The batch, length and seed of the example."""
_COLUMN_S = 0.5
_OPTIONS = f"--elastic={ELASTIC_NODES},grace=20,settle=1,faulty=1,snooze=1,backoff=1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticScript:
    """How long things take. `between` steps pass from one happening to the next."""

    steps: int = 900
    sample_s: float = 0.005
    between: int = 60
    other_s: int = 8
    limit_s: float = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of size. Seconds after the wish; `steps_lost` were done and had to be done again."""

    at_s: float
    before: int
    after: int
    cause: str
    saved_s: float | None
    first_step_s: float | None
    steps_lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticResult:
    """`weights` are the digests of this run and of the one with a fixed size."""

    changes: tuple[Change, ...]
    picture: tuple[str, ...]
    weights: str
    fixed: str
    steps: int
    samples_exact: bool
    took_s: float

    @property
    def is_right(self) -> bool:
        graceful = sum(change.steps_lost for change in self.changes if change.cause != "fault")
        return self.weights == self.fixed and self.samples_exact and graceful == 0


class ElasticTraining:
    """One run of the example in a folder that every node sees."""

    def __init__(self, bed: Bed, name: str, script: ElasticScript) -> None:
        self._bed, self._name, self._folder = bed, name, bed.shared / name
        self._log = ProgressLog(self._folder / "progress.jsonl")
        self.steps, self.job = script.steps, 0

    def submit(self, *options: str, sample_s: float, nodes: int = _BASE, before: str = "") -> None:
        """`before`: a line of shell that comes before the example's own."""
        there = self._bed.shared / "plain_elastic"
        if not _SOURCES.is_dir():
            raise BedError(f"the training's files are not in {_SOURCES}: run the demo from a checkout of Steward")
        there.mkdir(exist_ok=True)
        (there / "train.py").write_bytes((_SOURCES / "train.py").read_bytes())
        text = (_SOURCES / "train.sh").read_text()
        (there / "train.sh").write_text(text.replace("set -euo pipefail\n", f"set -euo pipefail\n{before}\n"))
        argv = ["sbatch", "--parsable", f"--job-name={self._name}", f"--output={self._folder}.log", f"--nodes={nodes}"]
        argv += [f"--export=ALL,PYTHON={sys.executable},TRAIN_DIR={there}", *options, str(there / "train.sh")]
        argv += [str(self._folder), f"--steps={self.steps}", f"--sample-s={sample_s}"]
        self.job = int(self._bed.run(argv).text.strip().partition(";")[0])

    def log(self) -> tuple[Happening, ...]:
        return self._log.happenings()

    def step(self) -> int:
        return max((each.step for each in self.log()[-8:]), default=0)

    def end(self) -> Happening | None:
        return last(self.log(), "done")

    def size(self) -> int:
        """Nodes that it makes steps with; 0: it has not begun its present generation."""
        log = self.log()
        begun = last(log, "begun")
        if begun is None or not any(each.what == "step" and each.at > begun.at for each in log[-8:]):
            return 0
        return int(begun.facts["world"])

    def sentence(self, each: Happening) -> str:
        if each.what == "begun":
            return f"trains from step {each.step} on {each.facts['world']} nodes"
        return f"done: {each.step} steps" if each.what == "done" else ""


def play_elastic(bed: Bed, screen: Screen, script: ElasticScript) -> ElasticResult:
    """Run it on a bed that is up. Raises BedError when something does not come about."""
    began = time.monotonic()
    screen.tell("demo", "the same training on one node from its beginning to its end, for its final weights")
    fixed = ElasticTraining(bed, "fixed", script)
    fixed.submit(sample_s=0.0, nodes=1)
    sentence = "the training of a fixed size is through"
    expected = wait_until(sentence, fixed.end, script.limit_s, moves=fixed.step)
    training = ElasticTraining(bed, "elastic", script)
    training.submit(_OPTIONS, sample_s=script.sample_s)
    screen.tell("demo", f"job {training.job}: sbatch --nodes={_BASE} {_OPTIONS} train.sh")
    watch = DemoWatch(bed, screen, training)
    _grow(watch, training, script, "it grows into the idle nodes")
    _shrinks(bed, screen, watch, script, training)
    _grow(watch, training, script, "it grows again")
    _lose_a_node(bed, screen, watch, script, training)
    end = watch.until("the run is through", training.end, script.limit_s, moves=training.step)
    watch.look()
    if end is None or expected is None:
        raise BedError("the training has no end")
    run = next(one for one in ask_head(bed, "/v1/elastic") if one["run"] == training.job)
    log = training.log()
    return ElasticResult(
        changes=changes_of(run["events"], log),
        picture=tuple(picture(stretches_of(log))),
        weights=str(end.facts["weights"]),
        fixed=str(expected.facts["weights"]),
        steps=end.step,
        samples_exact=is_exact(log, end.step),
        took_s=time.monotonic() - began,
    )


def _grow(watch: DemoWatch, training: ElasticTraining, script: ElasticScript, sentence: str) -> None:
    watch.until(sentence, lambda: training.size() == ELASTIC_NODES, script.limit_s)
    start = training.step()
    made = start + script.between
    watch.until("it makes way", lambda: training.step() >= made, script.limit_s, moves=training.step)


def _shrinks(bed: Bed, screen: Screen, watch: DemoWatch, script: ElasticScript, training: ElasticTraining) -> None:
    """A job with a higher priority needs one of the nodes; it gets it, and gives it back."""
    argv = ["sbatch", "--parsable", "--job-name=urgent", "--output=/dev/null", "--nodes=1", "--exclusive"]
    argv += ["--nice=-1000", f"--wrap=sleep {script.other_s}"]
    job, asked = bed.run(argv).text.strip().partition(";")[0], time.monotonic()
    screen.tell("demo", f"job {job}, with a higher priority, needs a node: sbatch --nodes=1 --exclusive --nice=-1000")
    watch.until("the urgent job runs", lambda: _state(bed, job) in ("RUNNING", "COMPLETED"), script.limit_s)
    screen.tell("demo", f"job {job} runs, {time.monotonic() - asked:.1f} s after it was submitted")
    watch.until("the run goes on smaller", lambda: 0 < training.size() < ELASTIC_NODES, script.limit_s)
    watch.until("the urgent job is through", lambda: _state(bed, job) in ("COMPLETED", ""), script.limit_s)


def _lose_a_node(bed: Bed, screen: Screen, watch: DemoWatch, script: ElasticScript, training: ElasticTraining) -> None:
    own = bed.run(["squeue", "--noheader", f"--jobs={training.job}", "--format=%N"]).text.strip()
    base = bed.run(["scontrol", "show", "hostnames", own]).text.split()
    run = next(one for one in ask_head(bed, "/v1/elastic") if one["run"] == training.job)
    node = next(node for node in run["nodes"] if node not in base)
    before = sum(1 for each in training.log() if each.what == "begun")
    screen.tell("fault", f"{node} is killed")
    bed.inject(fault(FaultKind.KILL_NODE, NodeName(node)))

    def goes_on() -> bool:
        return sum(1 for each in training.log() if each.what == "begun") > before and training.size() > 0

    watch.until("the run goes on without the node", goes_on, script.limit_s)


def _state(bed: Bed, job: str) -> str:
    shown = bed.run(["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"], check=False)
    return shown.text.strip()


def changes_of(events: Sequence[Mapping[str, Any]], log: Sequence[Happening]) -> tuple[Change, ...]:
    """The run's changes as Steward remembers them; what was lost, as the training's own log has it."""
    begun = [each for each in log if each.what == "begun"]
    lost: dict[float, int] = {}
    for each, after in pairwise(begun):
        of = [one.step for one in log if one.what == "step" and one.facts["generation"] == each.facts["generation"]]
        event = max((one["at"] for one in events if one["at"] <= after.at + _COLUMN_S), default=0.0)
        lost[event] = lost.get(event, 0) + max(of, default=each.step) - after.step
    return tuple(
        Change(
            at_s=one["at"] - begun[0].at,
            before=one["before"],
            after=one["after"],
            cause=one["cause"],
            saved_s=one["saved_s"],
            first_step_s=None if one["done"] is None else one["done"] - one["at"],
            steps_lost=lost.get(one["at"], 0),
        )
        for one in events
        if one["before"]
    )


def stretches_of(log: Sequence[Happening]) -> list[Stretch]:
    """Size and samples a second of each half second."""
    steps = sorted(
        {(each.at, int(each.facts["generation"])) for each in log if each.what == "step" and _is_first(each)}
    )
    sizes = {int(each.facts["generation"]): int(each.facts["world"]) for each in log if each.what == "begun"}
    if not steps:
        return []
    began, ended, found = steps[0][0], steps[-1][0], list[Stretch]()
    for number in range(int((ended - began) / _COLUMN_S)):
        edge = began + number * _COLUMN_S
        mine = [generation for at, generation in steps if edge <= at < edge + _COLUMN_S]
        nodes = sizes.get(mine[-1], 0) if mine else 0
        rate = len(mine) * _BATCH / _COLUMN_S
        found.append(Stretch(began=edge, ended=edge + _COLUMN_S, nodes=nodes, rate=rate))
    return found


def is_exact(log: Sequence[Happening], steps: int) -> bool:
    """Each step took the samples that it takes at any size; of one that was made twice, the last time counts."""
    taken: dict[int, dict[int, dict[int, list[int]]]] = {}
    for each in log:
        if each.what == "step":
            of = taken.setdefault(each.step, {}).setdefault(int(each.facts["generation"]), {})
            of[int(each.facts["rank"])] = each.facts["samples"]
    lasts = [taken.get(step, {0: {}}) for step in range(1, steps + 1)]
    order = [index for made in lasts for _, part in sorted(made[max(made)].items()) for index in part]
    return order == [sample_at(number, _LENGTH, _SEED) for number in range(steps * _BATCH)]


def _is_first(each: Happening) -> bool:
    return each.facts.get("rank") == 0


def tell_elastic(console: Console, result: ElasticResult) -> None:
    for text in result.picture:
        console.print(text, highlight=False, markup=False)
    table = Table(title="changes of size, seconds", title_justify="left", title_style="dim")
    for head in ("at", "nodes", "cause", "to save", "to the first step", "steps lost"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in result.changes:
        times = ("-" if seconds is None else f"{seconds:.2f}" for seconds in (one.saved_s, one.first_step_s))
        table.add_row(f"{one.at_s:.1f}", f"{one.before} -> {one.after}", one.cause, *times, str(one.steps_lost))
    console.print(table)
    same = "identical, bit for bit" if result.weights == result.fixed else "NOT the same"
    console.print(f"final weights of this run and of one with a fixed size: {same} (sha256 {result.weights[:16]}...)")
    exact = "each exactly once, in order" if result.samples_exact else "NOT exact"
    console.print(f"{result.steps} steps, their {result.steps * _BATCH} samples {exact}; {result.took_s:.0f} s in all")


def elastic_json(result: ElasticResult) -> dict[str, Any]:
    told = asdict(result)
    return {**told, "took_s": round(result.took_s, 1), "right": result.is_right}
