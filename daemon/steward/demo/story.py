"""The demo: one training job, three faults in turn, and the proof that nothing was lost."""

import time
from dataclasses import dataclass

from steward.demo.measure import CaseTimes, FaultStory, Figures, Made, figures, recovery
from steward.demo.report import Result
from steward.demo.screen import Screen
from steward.demo.training import RANKS, Training, undisturbed
from steward.demo.watch import Watch
from steward.testbed.bed import Bed, BedError
from steward.testbed.faults import FaultKind, fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How long things take. `between` steps pass from one recovery to the next fault."""

    steps: int = 1500
    step_s: float = 0.04
    between: int = 50
    limit_s: float = 60.0


NODES = 6


def play(bed: Bed, screen: Screen, script: Script) -> Result:
    """Run it on a bed that is up. Raises BedError when a recovery does not come."""
    began = time.monotonic()
    screen.tell("demo", "the same training without faults first, for its final weights")
    expected = undisturbed(bed, script.steps, script.limit_s)
    training = Training(bed, "digits", steps=script.steps, step_s=script.step_s)
    training.submit("--auto-resume=1", f"--nodes={RANKS + 1}", "--no-kill")
    screen.tell("demo", f"job {training.job}: sbatch --auto-resume=1 --nodes={RANKS + 1} --no-kill train.sbatch")
    watch = Watch(bed, screen, training)
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
    bed: Bed, screen: Screen, script: Script, training: Training, watch: Watch, story: FaultStory
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


def _run_on(watch: Watch, training: Training, script: Script) -> None:
    """Let the training make some way, so that there is something to lose."""
    start = training.step()
    watch.until("the training makes way", lambda: training.step() >= start + script.between, script.limit_s)


def _returned(watch: Watch, made: Made) -> CaseTimes | None:
    case = watch.case_of(made)
    return case if case.returned is not None else None
