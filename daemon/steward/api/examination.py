"""`steward doctor` for whoever asks: it costs commands of Slurm and a list of machines, so not at each call."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.concurrency import run_in_threadpool

from steward.workflows.doctor import Line

_FRESH_S = 5.0


class Examination:
    """One at a time, in a thread; those who ask meanwhile or within `fresh_s` seconds after it get the same lines."""

    def __init__(self, examine: Callable[[], Sequence[Line]], *, fresh_s: float = _FRESH_S) -> None:
        self._examine, self._fresh_s = examine, fresh_s
        self._turn = asyncio.Lock()
        self._lines: Sequence[Line] = ()
        self._fresh_until = 0.0

    async def lines(self) -> Sequence[Line]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            if loop.time() >= self._fresh_until:
                self._lines = await run_in_threadpool(self._examine)
                self._fresh_until = loop.time() + self._fresh_s
            return self._lines
