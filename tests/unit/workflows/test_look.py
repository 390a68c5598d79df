"""One read beside the cycle: what it brought back is there at once with its end."""

import threading
import time

from steward.workflows.pool import BackgroundRead, WorkerPool
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S, until


class Slowly:
    """A value that takes its time to go: just then the next one takes its place."""

    def __init__(self, goes: threading.Event) -> None:
        self.goes = goes

    def __del__(self) -> None:
        self.goes.set()
        time.sleep(0.2)


def test_a_read_whose_answer_is_there_is_not_under_way_any_more() -> None:
    """A cycle would take it for a late one, and at the next look for new enough."""
    goes, clock = threading.Event(), FakeClock()
    look = BackgroundRead("x", lambda: Slowly(goes), WorkerPool(1, "look"), clock, lambda: None)
    look.start()
    until("the first was read", lambda: look.tried(clock.at))
    clock.at += 1.0
    look.start()
    assert goes.wait(FACT_S)
    assert look.fresh(clock.at) is not None
    assert look.running_since is None
