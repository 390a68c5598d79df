"""What a training says of its steps: read from the lines that it prints, whatever framework prints them."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

_STEP = re.compile(
    r"(?<![a-z])(?:global[_ ]?)?(?:step|iter(?:ation)?)s?[\"']?\s*[:=#]?\s*\[?\s*(\d{1,12})(?![\d.])", re.I
)
_BAR = re.compile(r"(?<![\d/])(\d{1,12})/\d{1,12} \[\d")  # a bar of tqdm: 12/100 [00:01<00:09
_EPOCH = re.compile(r"epoch[\"']?\s*[:=#]?\s*\[?\s*(\d{1,9})", re.I)
_NUMBER = r"[\"']?\s*[:=]?\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan)"
_LOSS = re.compile(rf"loss{_NUMBER}", re.I)
_RATE = re.compile(rf"(?:(?<![a-z])lr|learning[_ ]rate){_NUMBER}", re.I)
_TALK = re.compile(r"checkpoint|ckpt|load|resum|restor|sav(?:e|ing)|begin|found|start|continu", re.I)
_OF_OTHERS = re.compile(r"^(?:steward|srun|slurmstepd\S*): ")
_LONGEST = 2_000
_KEPT_LINES = 200


class StepPlace(NamedTuple):
    """How far a training is. `epoch` is 0 where the output names none."""

    epoch: int
    step: int

    def __str__(self) -> str:
        return f"step {self.step}" + (f" of epoch {self.epoch}" if self.epoch else "")


class StepLine(NamedTuple):
    """A line of output that names a step."""

    place: StepPlace
    line: str
    loss: float | None
    rate: float | None


@dataclass(slots=True)
class Signs:
    """What one run has printed so far."""

    steps: list[StepLine] = field(default_factory=list)
    """Lines of steps that were done, in their order."""
    talk: list[StepLine] = field(default_factory=list)
    """Lines about a start, a load or a save that name a step."""
    tail: list[str] = field(default_factory=list)
    """The last lines."""
    _epoch: int = 0
    _rest: str = ""

    def read(self, text: str) -> None:
        """Take in what was printed since."""
        *lines, self._rest = re.split(r"[\r\n]", self._rest + text)
        self._rest = self._rest[-_LONGEST:]
        for line in lines:
            if line.strip():
                self._take(line[:_LONGEST].rstrip())

    def _take(self, line: str) -> None:
        self.tail = [*self.tail[1 - _KEPT_LINES :], line]
        if _OF_OTHERS.match(line):
            return
        if epoch := _EPOCH.search(line):
            self._epoch = int(epoch[1])
        if step := _STEP.search(line) or _BAR.search(line):
            loss, rate = _LOSS.search(line), _RATE.search(line)
            said = StepLine(
                StepPlace(self._epoch, int(step[1])),
                line,
                float(loss[1]) if loss else None,
                float(rate[1]) if rate else None,
            )
            (self.talk if _TALK.search(line) and not loss else self.steps).append(said)

    @property
    def first(self) -> StepLine | None:
        """The line with which the run began; None if no line has named a step."""
        return next(iter(self.steps or self.talk), None)

    @property
    def last(self) -> StepPlace | None:
        """The furthest step; None if no line has named one."""
        return max((each.place for each in self.steps or self.talk), default=None)
