"""The demo: one training job, three faults in turn, and the proof that nothing was lost."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from examples.demo.measure import (
    CaseTimes,
    FaultStory,
    Figures,
    Happening,
    Made,
    ProgressLog,
    Result,
    figures,
    last,
    recovery,
)
from examples.demo.watch import DemoWatch, Screen
from steward.model.ids import JobId, NodeName
from steward_bed.bed import Bed, BedError
from steward_bed.faults import FaultKind, fault
from steward_bed.wait import wait_until

_SOURCES = Path(__file__).resolve().parents[1] / "numpy_ddp"
_FILES = ("collective.py", "checkpoint.py", "model.py", "prepare.py", "train.py", "train.sbatch")
RANKS = 4


class Training:
    """One training in a folder that every node sees."""

    def __init__(self, bed: Bed, name: str, *, steps: int, step_s: float) -> None:
        self._bed = bed
        self._name = name
        self._folder = bed.shared / name
        self._options = ("--steps", str(steps), "--step-s", str(step_s))
        self._log = ProgressLog(self._folder / "progress.jsonl")
        self.steps = steps
        self.job: JobId | None = None

    def submit(self, *options: str) -> JobId:
        """Submit it with these options of sbatch; the job's id."""
        scripts = scripts_on(self._bed)
        environment = f"ALL,PYTHON={sys.executable},TRAIN_DIR={scripts}"
        output = self._bed.shared / f"{self._name}.log"
        argv = ["sbatch", "--parsable", f"--job-name={self._name}", f"--output={output}", f"--export={environment}"]
        done = self._bed.run([*argv, *options, str(scripts / "train.sbatch"), str(self._folder), *self._options])
        self.job = JobId(int(done.text.strip().partition(";")[0]))
        return self.job

    def log(self) -> tuple[Happening, ...]:
        return self._log.happenings()

    def end(self) -> Happening | None:
        """The last line, once the training is through."""
        return last(self.log(), "done")

    def step(self) -> int:
        """Steps done since the last start."""
        return max((each.step for each in self.log()[-3:]), default=0)

    def sentence(self, each: Happening) -> str:
        if each.what == "begun":
            return f"begins at step {each.step} on {each.facts['nodes']}"
        if each.what == "done":
            return f"done: {each.step} steps, {float(each.facts['accuracy']):.1%} of the digits right"
        return ""

    def batch_host(self) -> NodeName:
        """Where the job's script runs."""
        host = NodeName(self._shown("BatchHost"))
        if not host:
            raise BedError(f"job {self.job} has no batch host: it does not run")
        return host

    def hosts(self) -> tuple[NodeName, ...]:
        """Where the ranks run, in Slurm's order."""
        begun = last(self.log(), "begun")
        if begun is None:
            raise BedError(f"{self._name} has not begun")
        names = self._bed.run(["scontrol", "show", "hostnames", str(begun.facts["nodes"])]).text.split()
        return tuple(NodeName(name) for name in names)

    def _shown(self, word: str) -> str:
        lines = self._bed.run(["scontrol", "--oneliner", "show", "job", str(self.job)]).text.split()
        return next((value for name, _, value in (line.partition("=") for line in lines) if name == word), "")


def scripts_on(bed: Bed) -> Path:
    """The training's files in a folder that every node sees."""
    there = bed.shared / "numpy_ddp"
    if not _SOURCES.is_dir():
        raise BedError(f"the training's files are not in {_SOURCES}: run the demo from a checkout of Steward")
    there.mkdir(exist_ok=True)
    for name in _FILES:
        (there / name).write_bytes((_SOURCES / name).read_bytes())
    return there


def undisturbed(bed: Bed, steps: int, limit_s: float) -> str:
    """The digest of the final weights when nothing happens: the same training, as fast as it goes."""
    training = Training(bed, "undisturbed", steps=steps, step_s=0.0)
    training.submit(f"--nodes={RANKS}")
    end = wait_until("the undisturbed training is through", training.end, limit_s)
    if end is None:
        raise BedError("the undisturbed training has no end")
    return str(end.facts["weights"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How long things take. `between` steps pass from one recovery to the next fault. `limit_s` is longer than
    UnkillableStepTimeout (60 s), which a slurmstepd of 22.05 may wait for nothing when its step is killed twice at
    once (docs/operations.md)."""

    steps: int = 1500
    step_s: float = 0.04
    between: int = 50
    limit_s: float = 120.0


NODES = 6


def play(bed: Bed, screen: Screen, script: Script) -> Result:
    """Run it on a bed that is up. Raises BedError when a recovery does not come."""
    began = time.monotonic()
    screen.tell("demo", "the same training without faults first, for its final weights")
    expected = undisturbed(bed, script.steps, script.limit_s)
    training = Training(bed, "digits", steps=script.steps, step_s=script.step_s)
    training.submit("--auto-resume=1", f"--nodes={RANKS + 1}", "--no-kill")
    screen.tell("demo", f"job {training.job}: sbatch --auto-resume=1 --nodes={RANKS + 1} --no-kill train.sbatch")
    watch = DemoWatch(bed, screen, training)
    faults = tuple(_one_fault(bed, screen, script, training, watch, story) for story in FaultStory)
    end = watch.until("the training is through", training.end, script.limit_s + script.steps * script.step_s)
    watch.look()
    if end is None:
        raise BedError("the training has no end")
    return Result(
        faults=faults,
        weights=str(end.facts["weights"]),
        undisturbed=expected,
        steps=end.step,
        accuracy=float(end.facts["accuracy"]),
        took_s=time.monotonic() - began,
    )


def _one_fault(
    bed: Bed, screen: Screen, script: Script, training: Training, watch: DemoWatch, story: FaultStory
) -> Figures:
    """Make it, see the training go on and the node come back."""
    _run_on(watch, training, script)
    made = make(bed, screen, story, training)
    goes_on = f"the training goes on after {made.node} was killed ({story.text})"
    watch.until(goes_on, lambda: recovery(made, training.log()), script.limit_s)
    case = watch.until(f"{made.node} is back in service", lambda: _returned(watch, made), script.limit_s)
    return figures(made, training.log(), case or CaseTimes())


def make(bed: Bed, screen: Screen, story: FaultStory, training: Training) -> Made:
    """Kill the node that the story is about."""
    host = training.batch_host()
    node = host if story is FaultStory.BATCH_HOST else next(each for each in training.hosts() if each != host)
    made = Made(story=story, node=node, at=time.time())
    bed.inject(fault(FaultKind.KILL_NODE, node))
    screen.tell("fault", f"{node} is killed ({story.text})", at=made.at)
    return made


def _run_on(watch: DemoWatch, training: Training, script: Script) -> None:
    """Let the training make some way, so that there is something to lose."""
    start = training.step()
    watch.until("the training makes way", lambda: training.step() >= start + script.between, script.limit_s)


def _returned(watch: DemoWatch, made: Made) -> CaseTimes | None:
    case = watch.case_of(made)
    return case if case.returned is not None else None
