"""The demo's job: where its files are, how it is submitted, what its log says."""

import sys
from pathlib import Path

from steward.demo.progress import Happening, ProgressLog, last
from steward.model.ids import JobId, NodeName
from steward.testbed.bed import Bed, BedError
from steward.testbed.wait import wait_until

_SOURCES = Path(__file__).resolve().parents[3] / "examples" / "numpy_ddp"
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
