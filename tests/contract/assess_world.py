"""Setbacks made on purpose on a real cluster with accounting, and what `steward assess` reads of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from steward.assess.ask import AskedSlurm
from steward.assess.history import PastJobs
from steward.assess.look import look
from steward_bed.bed import Bed
from tests.fakes.until import FACT_S

ODD_NAME = 'odd|d\nna\x1fme,"x 1'


@dataclass(kw_only=True)
class SetbackWorld:
    """Jobs by the names that the test gives them."""

    bed: Bed
    began: int = field(default_factory=lambda: int(time.time()) - 1)
    jobs: dict[str, int] = field(default_factory=dict)

    def submit(self, name: str, *words: str, script: str = "sleep 300", title: str = "") -> int:
        """Submit a job."""
        argv = [
            "sbatch",
            "--parsable",
            "-o/dev/null",
            "-n1",
            "--mem=10",
            f"-J{title or name}",
            *words,
            "--wrap",
            script,
        ]
        self.jobs[name] = int(self.bed.run(argv).text.split(";")[0])
        return self.jobs[name]

    def wait(self, sentence: str, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        end = time.monotonic() + FACT_S
        while not holds():
            assert time.monotonic() < end, sentence
            time.sleep(0.2)

    def state(self, name: str) -> str:
        """Return the job's state, as squeue says it; empty for a job that is over."""
        return self.bed.run(["squeue", "-h", f"-j{self.jobs[name]}", "-o%T %r"], check=False).text.strip()

    def runs(self, name: str) -> None:
        """Wait until the job runs."""
        self.wait(f"{name} runs", lambda: self.state(name).startswith("RUNNING"))

    def node(self, name: str, state: str, reason: str = "") -> None:
        """Set a node's state."""
        self.bed.run(
            ["scontrol", "update", f"nodename={name}", f"state={state}", *([f"reason={reason}"] if reason else [])]
        )

    def past(self) -> PastJobs:
        """Return what is read of the last seconds."""
        return look(AskedSlurm(self.began, int(time.time()) + 1))[0]

    def read(self, sentence: str, holds: Callable[[PastJobs], bool]) -> PastJobs:
        """Wait until slurmdbd has what makes it hold, and return it."""
        self.wait(sentence, lambda: holds(self.past()))
        return self.past()
