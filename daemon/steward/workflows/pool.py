"""Threads for what may be slow. They are daemon threads: a call that never comes back cannot hold up our exit."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)


class Workers(Protocol):
    """Who carries out calls, now or later."""

    def submit(self, call: Callable[[], None]) -> None: ...


class Pool:
    """Runs calls in the order given, `size` at a time. A call that raises is logged; it cannot end its thread."""

    def __init__(self, size: int, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        for number in range(size):
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True).start()

    def submit(self, call: Callable[[], None]) -> None:
        self._calls.put(call)

    def _run(self) -> None:
        while True:
            call = self._calls.get()
            try:
                call()
            except Exception:
                log.exception("a call in a worker thread failed")
            del call  # with the picture that it was planned on, which each idle thread would keep
