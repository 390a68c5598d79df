"""Looks at head and training while the demo waits, and tells the screen what is new."""

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from steward.demo.measure import CaseTimes, Made
from steward.demo.progress import Happening
from steward.demo.screen import Now, Screen, box_states
from steward.testbed.bed import Bed
from steward.testbed.wait import ask_head, wait_until

T = TypeVar("T")
_LOOK_EVERY_S = 0.25
_CLOCKS_S = 0.05


class Watched(Protocol):
    """The training that is looked at."""

    steps: int

    def log(self) -> tuple[Happening, ...]: ...

    def step(self) -> int:
        """Steps done since the last start."""

    def sentence(self, each: Happening) -> str:
        """The timeline's sentence for a line of the training's log; empty for plain steps."""


class Watch:
    """One demo's eyes. Faults are the demo's own news; the rest is read."""

    def __init__(self, bed: Bed, screen: Screen, training: Watched) -> None:
        self._bed, self._screen, self._training = bed, screen, training
        self._told_events = 0
        self._told_log = 0
        self._next_look = 0.0

    def until(
        self, sentence: str, look: Callable[[], T], deadline_s: float, moves: Callable[[], object] | None = None
    ) -> T:
        """Wait as `wait_until` does, keeping the screen true meanwhile."""

        def looked() -> T:
            self.look()
            return look()

        return wait_until(sentence, looked, deadline_s, moves=moves)

    def look(self) -> None:
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        self._tell_log()
        self._tell_events()
        nodes = box_states(ask_head(self._bed, "/v1/nodes"))
        self._screen.show(Now(nodes=nodes, step=self._training.step(), steps=self._training.steps))

    def case_of(self, made: Made) -> CaseTimes:
        """The repair that the fault began; all None while there is none."""
        cases = ask_head(self._bed, "/v1/cases")
        mine = [case for case in cases if case["node"] == made.node and case["opened"] >= made.at - _CLOCKS_S]
        return _times(max(mine, key=lambda case: float(case["opened"]))) if mine else CaseTimes()

    def _tell_log(self) -> None:
        log = self._training.log()
        for each in log[self._told_log :]:
            if text := self._training.sentence(each):
                self._screen.tell("training", text, at=each.at)
        self._told_log = len(log)

    def _tell_events(self) -> None:
        for event in ask_head(self._bed, f"/v1/events?after={self._told_events}&limit=500"):
            self._told_events = int(event["seq"])
            source = "steward" if event["level"] == "info" else str(event["level"])
            self._screen.tell(source, str(event["text"]), at=float(event["at"]))


def _times(case: dict[str, Any]) -> CaseTimes:
    return CaseTimes(**{name: case[name] for name in ("detected", "marked", "replaced", "returned")})
