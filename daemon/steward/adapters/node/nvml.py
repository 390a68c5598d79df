"""NVML, asked through a child that keeps running.

The child answers each line with one line; one thread at a time asks it, with a time limit.
"""

import contextlib
import dataclasses
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from steward.adapters.process import Child, Failed, begin, end, show
from steward.model.probe import Gpu, GpuProcess, Raw
from steward.model.text import cause

_END_S = 0.2
_CHUNK = 65536
_MAX_BYTES = 1 << 20
"""The longest line of an answer, in bytes."""


class NoAnswer(Failed):
    """An error of a child that did not answer in time."""


class Conversation:
    """A conversation with a program, from its start until `close`. Raises Failed if it cannot be started."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = tuple(argv)
        self._child: Child = begin(argv)
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._child.pid

    def ask(self, line: bytes, *, timeout_s: float) -> bytes:
        """Send a line and return the child's next one, without the newline; an empty `line` only waits for the next.

        Raises NoAnswer after `timeout_s`, Failed if the child has ended or its line is too long: then the child cannot
        be used any more.
        """
        deadline = time.monotonic() + timeout_s
        assert self._child.stdin is not None
        try:
            if line:
                self._child.stdin.write(line + b"\n")
        except OSError as error:
            raise Failed(f"`{show(' '.join(self._argv))}` has ended: {cause(error)}") from error
        while b"\n" not in self._rest:
            self._rest += self._read(deadline, timeout_s)
            if len(self._rest) > _MAX_BYTES:
                raise Failed(f"`{show(' '.join(self._argv))}` printed a line of more than {_MAX_BYTES} bytes")
        answer, _, self._rest = self._rest.partition(b"\n")
        return answer

    def close(self) -> bool:
        """Kill the child; return False if it hangs in the kernel and is left behind, until a later call succeeds."""
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


_CHILD = (sys.executable, "-P", "-m", "steward.adapters.node.nvml_child")
_LOOK, _USE = b"look", b"use"
"""The child's questions: all values, or only what the GPUs do."""
_START_S = 20.0
_MAX_LEFT_BEHIND = 2
"""How many children may hang in the kernel; with this many, no further one is started."""
_FIELDS = {field.name for field in dataclasses.fields(Gpu)}


class Nvml:
    """NVML, through its child, for several threads. `argv` is the child's command, `converse` starts it."""

    def __init__(
        self, argv: Sequence[str] = _CHILD, *, converse: Callable[[Sequence[str]], Conversation] = Conversation
    ) -> None:
        self._argv = tuple(argv)
        self._converse = converse
        self._lock = threading.Lock()
        self._child: Conversation | None = None
        self._left_behind: list[Conversation] = []
        self._uuids: tuple[str, ...] = ()
        self._is_away = False

    @property
    def uuids(self) -> tuple[str, ...]:
        """The UUIDs from the last look that had any, in NVML's order."""
        return self._uuids

    def look(self, listed: Sequence[str], timeout_s: float, *, use_only: bool = False) -> Raw:
        """Return `gpus`, or `hung` after `timeout_s`. Raises Failed if NVML cannot be asked at all.

        `listed` are the devices that the driver has; without any, NVML is not asked. `use_only` as in `QueryGpus`.
        """
        if not listed:
            return Raw(gpus=())
        with self._lock:
            return self._look(listed, timeout_s, _USE if use_only else _LOOK)

    def let_go(self) -> None:
        """End the child, so that no device file is open; the next look starts another one."""
        with self._lock:
            self._end_child()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep all device files closed in this context, for the reset of a GPU; looks fail meanwhile."""
        with self._lock:
            self._end_child()
            self._is_away = True
        try:
            yield
        finally:
            self._is_away = False

    def _look(self, listed: Sequence[str], timeout_s: float, question: bytes) -> Raw:
        if self._is_away:
            raise Failed("NVML is not asked while a GPU is reset")
        self._left_behind = [child for child in self._left_behind if not child.close()]
        if len(self._left_behind) >= _MAX_LEFT_BEHIND:
            return Raw(hung=f"NVML hangs: process {self._left_behind[0].pid} cannot even be killed")
        child = self._child or self._start()
        try:
            answer = json.loads(child.ask(question, timeout_s=timeout_s))
        except NoAnswer as error:
            self._end_child()
            return Raw(hung=f"NVML hangs: {error}")
        except (Failed, ValueError) as error:
            self._end_child()
            raise Failed(f"NVML's child failed: {error}") from error
        if "error" in answer:
            raise Failed(str(answer["error"]))
        gpus = tuple(gpu_of(record) for record in answer["gpus"])
        self._uuids = tuple(gpu.uuid for gpu in gpus if gpu.uuid) or self._uuids
        return Raw(gpus=with_missing(gpus, listed))

    def _start(self) -> Conversation:
        """Start the child, and wait until it is ready, so that its imports do not count as NVML's time."""
        self._child = child = self._converse(self._argv)
        try:
            child.ask(b"", timeout_s=_START_S)
        except Failed as error:
            self._end_child()
            raise Failed(f"NVML's child does not start: {error}") from error
        return child

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None and not child.close():
            self._left_behind.append(child)


def gpu_of(record: Mapping[str, Any]) -> Gpu:
    """Return the GPU in the child's record. Raises ValueError."""
    known: dict[str, Any] = {name: value for name, value in record.items() if name in _FIELDS}
    known["nvlinks"] = tuple(record.get("nvlinks", ()))
    if (users := record.get("processes")) is not None:
        known["processes"] = tuple(GpuProcess(pid=int(one["pid"]), mib=one["mib"]) for one in users)
    return Gpu(**known)


def with_missing(answered: tuple[Gpu, ...], listed: Sequence[str]) -> tuple[Gpu, ...]:
    """Add a GPU with an error for each device that the driver lists and NVML does not name."""
    missing = range(len(answered), len(listed))
    return (*answered, *(Gpu(index=n, error="the driver lists it, NVML does not") for n in missing))
