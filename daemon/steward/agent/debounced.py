"""What is worth doing after each change, but not at the pace of those who make changes."""

import asyncio
from collections.abc import Callable


class Debounced:
    """`what` is done at once, and after that at most every `every_s` seconds: then for all that was wished since.
    Without a running loop it is always done at once."""

    def __init__(self, what: Callable[[], None], every_s: float) -> None:
        self._what, self._every_s = what, every_s
        self._rest: asyncio.TimerHandle | None = None
        self._is_wished = False

    def wish(self) -> None:
        """Do it now, or when it is time again."""
        if self._rest is not None:
            self._is_wished = True
            return
        self._do()

    def now(self) -> None:
        """Do what is wished and not done yet: the process is about to end."""
        if self._rest is not None:
            self._rest.cancel()
            self._again()

    def _do(self) -> None:
        self._what()
        try:
            self._rest = asyncio.get_running_loop().call_later(self._every_s, self._again)
        except RuntimeError:
            self._rest = None

    def _again(self) -> None:
        self._rest = None
        if self._is_wished:
            self._is_wished = False
            self._do()
