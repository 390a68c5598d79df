"""A program of ours with Slurm's library: asked a line at a time, stopped after a failure, started again later."""

import os
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from steward.adapters import process
from steward.adapters.process import Child, show
from steward.model.text import cause_and_file
from steward.ports import PortError

A = TypeVar("A")
_PAUSE_S, _MAX_PAUSE_S = 5.0, 60.0
"""The first pause after a failure, which each further failure doubles, and the longest."""
_END_S = 0.2
_CHUNK = 1 << 18


class _NoAnswer(OSError):
    """An error of a program that ended, was late, or wrote too much."""


class Helper:
    """The process of such a program. Safe to call from several threads; the process ends with ours, or with `close`."""

    def __init__(
        self,
        argv: Callable[[], Sequence[str]],
        env: Mapping[str, str],
        *,
        patience_s: float,
        most: int,
        monotonic: Callable[[], float],
    ) -> None:
        """Take the program and its limits.

        `argv` is called at each start; empty: there is no program. An answer has at most `most` bytes, and comes within
        `patience_s`. `monotonic` is for the pause after a failure.
        """
        self._argv, self._env, self._patience_s, self._most = argv, env, patience_s, most
        self._monotonic = monotonic
        self._turn = threading.Lock()
        self._child: Child | None = None
        self._not_before, self._pause_s = float("-inf"), _PAUSE_S
        self.trouble = ""
        """Why the last question had no answer; empty if it had one, or none was asked."""

    def ask(self, line: bytes, is_whole: Callable[[bytearray], bool], read: Callable[[bytes], A | None]) -> A | None:
        """Return what `read` makes of the answer; None if there is none, or it is malformed.

        Never raises OSError or PortError, not even those of `read`.
        """
        with self._turn:
            if self._monotonic() < self._not_before:
                return None
            try:
                answer = self._ask(line, is_whole, read)
                self.trouble = "" if answer is not None else "its answer has another form"
            except (OSError, PortError) as error:
                answer, self.trouble = None, show(cause_and_file(error))
            if answer is None:
                self._stop()
                self._not_before = self._monotonic() + self._pause_s
            self._pause_s = _PAUSE_S if answer is not None else min(2 * self._pause_s, _MAX_PAUSE_S)
            return answer

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._stop()

    def _ask(self, line: bytes, is_whole: Callable[[bytearray], bool], read: Callable[[bytes], A | None]) -> A | None:
        """Ask the program. Raises OSError without a whole answer."""
        child = self._running()
        if child is None or child.stdin is None or child.stdout is None:
            raise _NoAnswer("there is no program")
        child.stdin.write(line)
        deadline, got = time.monotonic() + self._patience_s, bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while len(got) < self._most and ready.select(max(0.0, deadline - time.monotonic())):
                chunk = os.read(child.stdout.fileno(), _CHUNK)
                if not chunk:
                    raise _NoAnswer("it ended")
                got += chunk
                if is_whole(got):
                    return read(bytes(got))
        raise _NoAnswer(f"no whole answer within {self._patience_s:g} s, or one of more than {self._most} bytes")

    def _running(self) -> Child | None:
        """Return the process, started if needed; None if there is no program."""
        if self._child is None and (argv := self._argv()):
            self._child = process.begin(argv, env=self._env)
        return self._child

    def _stop(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            process.end(child, _END_S)
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
