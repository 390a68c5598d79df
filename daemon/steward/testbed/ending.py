"""A bed whose program is interrupted: it is taken down, whole, however often somebody interrupts."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from steward.testbed.bed import Bed, Say

_Handler = Callable[[int, Any], Any] | int


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
