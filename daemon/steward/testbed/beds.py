"""Test beds of every kind: made, found again, and taken down whole, however often somebody interrupts."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steward.testbed.bed import Backend, Bed, BedError, BedSpec, Say
from steward.testbed.docker import DockerBed
from steward.testbed.layout import MANIFEST
from steward.testbed.local import LocalBed

_Handler = Callable[[int, Any], Any] | int


def make(spec: BedSpec) -> Bed:
    """A bed that is not up yet. Raises BedError for what the backend cannot be."""
    if spec.backend is Backend.LOCAL:
        return LocalBed(spec)
    if spec.fixed:
        raise BedError("fixed machines are for the local backend; use --backend local")
    return DockerBed(spec)


def find(directory: Path) -> Bed:
    """The bed that was brought up in `directory`. Raises BedError when there is none."""
    try:
        entry = json.loads((directory / MANIFEST).read_text())
    except FileNotFoundError:
        raise BedError(f"no bed in {directory}; `steward testbed up --dir {directory}` makes one") from None
    return make(BedSpec(dir=directory, backend=Backend(entry["spec"]["backend"])))


# A bed whose program is interrupted: it is taken down, whole.


@contextmanager
def stoppable() -> Iterator[None]:
    """Within it SIGTERM ends this program as SIGINT does: what is to be done at the end is done."""
    with _handled({signal.SIGTERM: lambda number, _: sys.exit(128 + number)}):
        yield


def take_down(bed: Bed, say: Say) -> None:
    """`bed.down()`; a signal that would end this program meanwhile is answered with one line."""

    def wait(number: int, _: Any) -> None:
        say(f"{signal.Signals(number).name}: wait, {bed.spec.dir} is being taken down")

    with _handled({signal.SIGINT: wait, signal.SIGTERM: wait}):
        bed.down()


@contextmanager
def _handled(handlers: dict[signal.Signals, _Handler]) -> Iterator[None]:
    """Outside of the main thread signals are somebody else's."""
    is_ours = threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, handler) for each, handler in handlers.items()} if is_ours else {}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)
