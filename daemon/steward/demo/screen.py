"""The screen while the demo runs: a line a happening, and below them how the cluster and the job are now."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

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
