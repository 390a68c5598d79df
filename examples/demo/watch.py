"""The screen while the demo runs: a line a happening, and below them how the cluster and the job are now; and the looks
at head and training that tell it what is new."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.demo.measure import CaseTimes, Happening, Made
from steward_bed.bed import Bed
from steward_bed.wait import ask_head, wait_until

_COLOURS = {"fault": "bold red", "training": "green", "warning": "yellow", "error": "red", "demo": "bold"}
_NODE_COLOURS = {"idle": "cyan", "allocated": "green", "mixed": "green", "down": "red", "drain": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The state of things: node name -> word, and the job's step of all steps."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    step: int = 0
    steps: int = 1


class Screen:
    """A context: lines scroll above a live part on a terminal, and are plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def tell(self, source: str, text: str, *, at: float | None = None) -> None:
        """One line: seconds since the demo began, who says it, what."""
        since = time.monotonic() - self._began - (max(0.0, time.time() - at) if at else 0.0)
        line = Text.assemble((f"{since:7.2f} s  ", "dim"), (f"{source:<9}", _COLOURS.get(source, "dim")), text)
        self._console.print(line, no_wrap=True, overflow="ellipsis")

    def show(self, now: Now) -> None:
        if self._live:
            self._live.update(_picture(now), refresh=True)

    def print(self, what: RenderableType) -> None:
        self._console.print(what)


def _picture(now: Now) -> RenderableType:
    boxes = [Text(f" {name} {state} ", style=f"reverse {_colour(state)}") for name, state in now.nodes.items()]
    progress = Table.grid(padding=(0, 1))
    progress.add_row(f"training {now.step:5}/{now.steps}", ProgressBar(total=now.steps, completed=now.step, width=50))
    return Group(Text(""), Columns(boxes), progress)


def _colour(state: str) -> str:
    return next((colour for word, colour in _NODE_COLOURS.items() if state.startswith(word)), "white")


def box_states(nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Node -> word, from the head's page of nodes; the repair's step where there is one."""
    return {node["name"]: str(node["step"] or node["state"]) for node in nodes}


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


class DemoWatch:
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
