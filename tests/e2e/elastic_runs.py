"""An elastic run of plain Python processes on a bed: what its training told, and what Slurm shows of it."""

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steward_bed.bed import Bed
from tests.e2e.elastic_processes import told
from tests.e2e.on_node import has_own_machines, on_node
from tests.e2e.story import Story
from tests.e2e.torch_place import torch_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "plain_elastic"
TORCH_EXAMPLE = EXAMPLES / "pytorch_elastic"
HYPERPOD = Path(__file__).with_name("hyperpod_pattern.py")
GRACE_S = 10
QUICK = f"grace={GRACE_S},settle=0,faulty=1,snooze=1,backoff=1"
LIVE = "PENDING,CONFIGURING,RUNNING,COMPLETING"
KEEP_EVERY = 20
SAMPLE_S = 0.004
"""About 0.1 s a step."""
SAVES_SLOWLY = """
import runpy, time
from steward.job import elastic
kept, takes = elastic.save_and_wait, {takes}
def saves(*words):
    time.sleep(takes[min(elastic.generation(), len(takes)) - 1])
    kept(*words)
elastic.save_and_wait = saves
runpy.run_path(__file__.replace("train.py", "saves.py"), run_name="__main__")
"""

LINGERS = "\n[ $STEWARD_ELASTIC_ROLE != base ] || sleep 600\n"
"""The base's script goes on when its training was stopped: only KillWait ends it."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A training: the example whose train.sh starts it, the program, and options of it. `pace` is for a step to take
    about 0.1 s, and for checkpoints from time to time."""

    example: Path
    pace: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    program: Path | None = None
    """Not the example's own."""


_KEPT = f"--keep-every={KEEP_EVERY}"
KINDS = {
    "plain": Kind(EXAMPLE, (_KEPT, f"--sample-s={SAMPLE_S}")),
    "fsdp": Kind(TORCH_EXAMPLE, (_KEPT, "--step-s=0.1"), ("--fsdp",)),
    "hyperpod": Kind(TORCH_EXAMPLE, program=HYPERPOD),
}


@dataclass(kw_only=True)
class ElasticStory:
    """One run of a story."""

    story: Story
    folder: Path
    job: int

    def lines(self, *what: str) -> list[Line]:
        """What the training wrote down, oldest first; a half-written last line left out."""
        return [line for line in told(self.folder) if line["what"] in what]

    @property
    def sizes(self) -> list[int]:
        """In nodes, of each generation that began to train."""
        return [line["world"] for line in self.lines("begun")]

    @property
    def step(self) -> int:
        return max((line["step"] for line in self.lines("step")), default=0)

    def trains_at(self, *sizes: int, after: int = 0, deadline_s: float = 60.0) -> Line:
        """A generation of one of these sizes has made steps, begun after so many others: how it began."""
        found = list[Line]()

        def is_there() -> bool:
            begun = self.lines("begun")[after:]
            steps = {line["generation"]: line["at"] for line in self.lines("step")}
            found[:] = [
                line for line in begun if line["world"] in sizes and line["at"] <= steps.get(line["generation"], 0)
            ]
            return bool(found)

        of = " or ".join(map(str, sizes))
        self.story.wait(f"run {self.job} trains on {of} nodes after {after} generations", is_there, deadline_s)
        return found[0]

    def goes_on(self, steps: int = 3, deadline_s: float = 20.0) -> None:
        """It makes more steps."""
        before = self.step
        self.story.wait(f"run {self.job} goes on", lambda: self.step > before + steps, deadline_s)

    def replicas(self, states: str = "RUNNING") -> Mapping[int, str]:
        """Its replica jobs: id -> nodes."""
        argv = ["squeue", "--noheader", f"--states={states}", "--format=%A|%k|%N"]
        words = [line.strip().split("|") for line in self.story.bed.run(argv).text.splitlines()]
        return {int(id): node for id, comment, node in words if comment.startswith(f"steward-elastic:{self.job}:")}

    def replica(self) -> tuple[int, str]:
        """The one that runs, and its node."""
        self.story.wait(f"one replica of run {self.job} runs", lambda: len(self.replicas()) == 1, 30.0)
        return next(iter(self.replicas().items()))

    def shown(self) -> Line:
        """As `steward elastic show` has it."""
        return next((run for run in self.story.get("/v1/elastic") if run["run"] == self.job), {})

    def told_of(self, kind: str = "elastic") -> list[str]:
        """What Steward told of it."""
        events = self.story.events(kind)
        return [f"{one['kind']}: {one['text']}" for one in events if f"elastic run {self.job}" in one["text"]]

    def kill_coordinator(self) -> None:
        """It is started again on the node of the base's script."""
        bed = self.story.bed
        if has_own_machines(bed):
            on_node(bed, self.story.job(self.job).batch_host, "pkill", "-KILL", "-f", f"coordinate.* {self.job}( |$)")
        else:
            os.kill(_coordinator(bed, self.job), signal.SIGKILL)

    def lost_steps(self) -> int:
        """Steps that were made twice."""
        steps = [line["step"] for line in self.lines("step") if line["rank"] == 0]
        return len(steps) - len(set(steps))


def python_of(bed: Bed) -> str:
    """One that its jobs can run, and that has Steward's package for them."""
    return "/opt/steward/bin/python3" if has_own_machines(bed) else sys.executable


def _coordinator(bed: Bed, job: int) -> int:
    """Its process, where all nodes are this machine."""
    conf = f"SLURM_CONF={bed.env['SLURM_CONF']}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"coordinate" in words and str(job).encode() in words and conf in _environ(folder):
                return int(folder.name)
    raise AssertionError(f"run {job} has no coordinator")


def _environ(process: Path) -> list[bytes]:
    return (process / "environ").read_bytes().split(b"\0")


def _lingering(script: str) -> str:
    return script.replace("trap : TERM\n", "set +e; trap : TERM\n") + LINGERS


def a_run(
    story: Story,
    *options: str,
    sizes: str = "3",
    words: str = QUICK,
    user: str = "",
    kind: str = "plain",
    steps: int = 1_000_000,
    save_s: Sequence[float] = (),
    lingers: bool = False,
) -> ElasticStory:
    """Submitted with these options of sbatch. `kind`: one of `KINDS`. `save_s`: how long a save takes when it is
    asked for one, at its first size and so on; the last one stays. `lingers`: its base cleans up for KillWait."""
    story.dir.chmod(0o1777)
    number = len(story.jobs)
    folder = story.dir / f"run{number}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    training = KINDS[kind]
    text = (training.example / "train.sh").read_text()
    train = story.script(f"train{number}.sh", _lingering(text) if lingers else text)
    place = story.dir / f"program{number}"
    place.mkdir()
    trains = (training.program or training.example / "train.py").read_text()
    (place / "saves.py").write_text(trains)
    (place / "train.py").write_text(SAVES_SLOWLY.format(takes=tuple(save_s)) if save_s else trains)
    python = {"PYTHON": python_of(story.bed)} if kind == "plain" else torch_of(story.bed)
    exported = ",".join(("ALL", f"TRAIN_DIR={place}", *(f"{name}={word}" for name, word in python.items())))
    words_of_it = (str(folder), f"--steps={steps}", *training.pace, *training.options)
    given = (f"--elastic={sizes},{words}", f"--export={exported}", *(options or ("-N2",)))
    job = story.submit(train, *given, arguments=words_of_it, user=user)
    return ElasticStory(story=story, folder=folder, job=job)
