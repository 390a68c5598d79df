"""What a run gains where a node comes and goes: `python -m tests.bench.flapping [--seconds N] [--every N]`.

Two nodes on a local cluster of three train, first without growth, for their pace. Then the same training may grow to
three nodes, while somebody's job takes the third one for N of every 2 N seconds. Printed are the changes of size, and
the steps beside those that the two nodes would have made alone. Status 1 when these are more, or when the run changed
its size more often than twice for each time that the node came.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from examples.demo.elastic import ElasticScript, ElasticTraining
from steward_bed.bed import Bed, BedSpec
from steward_bed.wait import ask_head, wait_until
from tests.bench.recovery import new_dir, with_bed

LIMIT_S = 90.0
ALONE_S = 40.0
_OPTIONS = "--elastic=3,grace=10,settle=1,faulty=1,snooze=2,backoff=4"
_ENDLESS = ElasticScript(steps=10_000_000, sample_s=0.005)
say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """`steps` of the run that may grow, within `seconds`; `alone` is what it would have made at the base's pace. Its
    beginning is one of the `changes`."""

    seconds: float
    came: int
    changes: int
    steps: int
    alone: float

    @property
    def is_good(self) -> bool:
        return self.steps > self.alone and self.changes <= 1 + 2 * self.came


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=300.0)
    asked.add_argument("--every", type=float, default=20.0, help="seconds that the node is there, and that it is not")
    asked.add_argument("--json", type=Path, default=None, help="also write the figures here")
    given = asked.parse_args()
    spec = BedSpec(dir=new_dir(), nodes=3, steward=True)
    gain = with_bed(spec, lambda bed: measure(bed, given.seconds, given.every))
    ratio = gain.steps / gain.alone
    print(f"{gain.seconds:.0f} s, a node came {gain.came} times for {given.every:g} s: {gain.changes} changes of size")
    print(f"{gain.steps} steps; two nodes alone would have made {gain.alone:.0f}: {ratio:.3f} times as many")
    if given.json:
        given.json.write_text(json.dumps(asdict(gain), indent=2) + "\n")
    return 0 if gain.is_good else 1


def measure(bed: Bed, seconds: float, every: float) -> Gain:
    fixed = _trains(bed, "alone")
    pace = _steps_in(fixed, ALONE_S) / ALONE_S
    bed.run(["scancel", str(fixed.job)])
    say(f"two nodes alone: {pace:.2f} steps a second")
    run = _trains(bed, "flapping", _OPTIONS)
    before, began, came = run.step(), time.monotonic(), 0
    while time.monotonic() < began + seconds:
        came += 1
        time.sleep(every)
        took = time.monotonic()
        wrap = f"--wrap=sleep {every:g}"
        job = int(
            bed.run(["sbatch", "--parsable", "--nodes=1", "--exclusive", "--output=/dev/null", wrap]).text.strip()
        )
        wait_until("the node is free again", partial(_is_over, bed, job), LIMIT_S + every)
        say(f"{came}: taken for {time.monotonic() - took:.0f} s; {run.step()} steps so far, {run.size()} nodes")
    took_s = time.monotonic() - began
    steps = run.step() - before
    shown = next(one for one in ask_head(bed, "/v1/elastic") if one["run"] == run.job)
    bed.run(["scancel", str(run.job)])
    return Gain(seconds=took_s, came=came, changes=int(shown["changes"]), steps=steps, alone=pace * took_s)


def _trains(bed: Bed, name: str, *options: str) -> ElasticTraining:
    training = ElasticTraining(bed, name, _ENDLESS)
    training.submit(*options, sample_s=_ENDLESS.sample_s)
    wait_until("it makes steps", lambda: training.size() > 0, LIMIT_S)
    return training


def _steps_in(training: ElasticTraining, seconds: float) -> int:
    before = training.step()
    time.sleep(seconds)
    return training.step() - before


def _is_over(bed: Bed, job: int) -> bool:
    return not bed.run(["squeue", "--noheader", f"--jobs={job}", "--states=PENDING,RUNNING"], check=False).text.strip()


if __name__ == "__main__":
    sys.exit(main())
