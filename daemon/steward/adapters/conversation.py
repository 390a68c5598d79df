"""A program that stays and answers each line with one line, asked by one thread at a time and never waited for long."""

import contextlib
import os
import select
import time
from collections.abc import Sequence

from steward.adapters.process import Child, Failed, begin, end, show

_END_S = 0.2
_CHUNK = 65536
_MAX_BYTES = 1 << 20
"""Of one line."""


class NoAnswer(Failed):
    """It did not answer in time."""


class Conversation:
    """Starts the program; `close` ends it. Raises Failed when it cannot be started."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = tuple(argv)
        self._child: Child = begin(argv)
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._child.pid

    def ask(self, line: bytes, *, timeout_s: float) -> bytes:
        """Its next line, without the newline. Raises NoAnswer after `timeout_s`, Failed when it has ended or says more
        than it may: then it is of no use any more. An empty `line` only waits for what it says by itself."""
        deadline = time.monotonic() + timeout_s
        assert self._child.stdin is not None
        try:
            if line:
                self._child.stdin.write(line + b"\n")
        except OSError as error:
            raise Failed(f"`{show(' '.join(self._argv))}` has ended: {error}") from error
        while b"\n" not in self._rest:
            self._rest += self._read(deadline, timeout_s)
            if len(self._rest) > _MAX_BYTES:
                raise Failed(f"`{show(' '.join(self._argv))}` says more than {_MAX_BYTES} bytes")
        answer, _, self._rest = self._rest.partition(b"\n")
        return answer

    def close(self) -> bool:
        """Kill it. False when it hangs in the kernel: it is left behind; call again to see whether it is gone."""
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return end(self._child, _END_S)

    def _read(self, deadline: float, timeout_s: float) -> bytes:
        assert self._child.stdout is not None
        fd = self._child.stdout.fileno()
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
            raise NoAnswer(f"no answer within {timeout_s:g} s")
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            raise Failed(f"`{show(' '.join(self._argv))}` has ended")
        return chunk
