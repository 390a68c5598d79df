"""Run other programs: by argv, always with a time limit and an output limit, never through a shell."""

import io
import os
import selectors
import signal
import subprocess  # the only import of it in Steward
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from steward.model.text import cause
from steward.ports import Retryable

_CHUNK = 65536
_SHOWN = 400
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The end of a program. `returncode` is negative for a signal; `truncated`: its output was cut."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    seconds: float
    truncated: bool = False

    @property
    def text(self) -> str:
        """The program's stdout as UTF-8; other bytes become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()

    def line(self) -> str:
        """Return command, status and both outputs in one printable line, each bounded."""
        parts = [f"`{show(' '.join(self.argv))}`", f"rc={self.returncode}", f"{self.seconds:.2f}s"]
        parts += [
            f"{name}={show(text)!r}" for name, text in (("stdout", self.text), ("stderr", self.error_text)) if text
        ]
        return " ".join(parts)


class Failed(Retryable):
    """An error of a program that did not start, ran out of time, or ended with a bad status (then in `completed`)."""

    def __init__(self, message: str, completed: Completed | None = None) -> None:
        super().__init__(message)
        self.completed = completed


def said_by(error: Failed) -> str:
    """Return the last line of a failed program's stderr, or else how it ended."""
    lines = error.completed.error_text.splitlines() if error.completed is not None else []
    return lines[-1][:400] if lines else str(error)


Child = subprocess.Popen[bytes]


class Left(Failed):
    """An error of a program that was killed, but hangs in the kernel: collect `child` later with `end`."""

    def __init__(self, message: str, child: Child) -> None:
        super().__init__(message)
        self.child = child


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    max_bytes: int = MAX_BYTES,
    check: bool = True,
    patience_s: float | None = None,
    pass_fds: tuple[int, ...] = (),
    enough: str = "",
) -> Completed:
    """Run a program to its end, in a process group of its own; nothing of the group is left afterwards.

    A program is ended as soon as its stderr contains `enough` (empty: never), and then counts as successful.

    `env` is laid over this process's environment, and takes a variable away by an empty value; `cwd` is the working
    directory (None: this process's); the program inherits `pass_fds`. Each output is cut at `max_bytes`. Raises Failed
    (a Retryable) if the program cannot be started, after `timeout_s`, or, with `check`, for a non-zero status; Left if
    the program is still there `patience_s` after it was killed (None: wait for it).
    """
    started = time.monotonic()
    child = _start(
        argv,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_whole(env),
        cwd=cwd,
        bufsize=0,
        pass_fds=pass_fds,
    )
    talk = _Talk(child, input or b"", max_bytes, enough.encode())
    try:
        ended = talk.until(started + timeout_s)
    finally:
        _kill_group(child)
        is_gone = _ends_within(child, patience_s)
        _close_pipes(child)
    if not is_gone:
        raise Left(f"no end within {timeout_s:g} s, hangs in the kernel: `{show(' '.join(argv))}`", child)
    seconds = time.monotonic() - started
    done = Completed(
        argv=tuple(argv),
        returncode=child.returncode,
        stdout=talk.out(child.stdout),
        stderr=talk.out(child.stderr),
        seconds=seconds,
        truncated=talk.truncated,
    )
    if not ended:
        raise Failed(f"no end within {timeout_s:g} s, killed: {done.line()}", done)
    if check and done.returncode != 0 and not talk.has_enough:
        raise Failed(done.line(), done)
    return done


def begin(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Child:
    """Start a program that stays, in a process group of its own, with pipes to its input and from its output.

    `env` is laid over this process's environment. The caller ends the program with `end`, and bounds its own wait for
    it. Raises Failed.
    """
    return _start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_whole(env), bufsize=0)


def _whole(env: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Return this process's environment with `env` laid over it; None for no `env`."""
    if env is None:
        return None
    return {name: word for name, word in {**os.environ, **env}.items() if word or name not in env}


def _start(argv: Sequence[str], **options: Any) -> Child:
    """Start a program in a process group of its own. Raises Failed."""
    try:
        return subprocess.Popen(list(argv), start_new_session=True, **options)
    except (OSError, ValueError) as error:
        raise Failed(f"cannot start `{show(argv[0])}`: {cause(error)}") from error


def end(child: Child, timeout_s: float) -> bool:
    """Kill the child and its process group; return False if it still hangs in the kernel after `timeout_s`."""
    if child.returncode is None:
        _kill_group(child)
    return _ends_within(child, timeout_s)


_WATCHED_EVERY_S = 0.2


def run_to_file(
    argv: Sequence[str],
    *,
    output: IO[bytes],
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    watch: Callable[[int], None],
) -> int:
    """Run a program to its end with both outputs in `output`; return its status, negative for a signal.

    `env` is its whole environment. `watch` is called with its pid at once and every 0.2 s; an exception from it
    ends the program. Processes that the program leaves in the background live on, unless its time is over: then its
    whole process group is killed. Raises Failed as `run` does.
    """
    deadline = time.monotonic() + timeout_s
    child = _start(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(env), cwd=cwd)
    try:
        while time.monotonic() < deadline:
            watch(child.pid)
            if _ends_within(child, min(_WATCHED_EVERY_S, deadline - time.monotonic())):
                return child.returncode
    except BaseException:
        _end_group(child)
        raise
    _end_group(child)
    raise Failed(f"no end within {timeout_s:g} s, killed: `{show(' '.join(argv))}`")


def _ends_within(child: Child, seconds: float | None) -> bool:
    try:
        child.wait(None if seconds is None else max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _close_pipes(child: Child) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _end_group(child: Child) -> None:
    """Kill the child's group and collect the child, unless it was collected when it ended by itself."""
    if child.returncode is None:
        _kill_group(child)
        child.wait()


def show(text: str) -> str:
    """Return foreign text for one line of a message: printable, bounded."""
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 1] + "…"


def _kill_group(child: Child) -> None:
    """Kill the child's group, even after a normal end: the program may have left processes in it."""
    try:
        # The child is not reaped yet, so its process group id cannot belong to another program.
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class _Talk:
    """The input and the outputs of one child, moved without blocking past a deadline."""

    def __init__(self, child: Child, data: bytes, max_bytes: int, enough: bytes) -> None:
        self._data, self._enough = memoryview(data), enough
        self._room = max_bytes
        self._child = child
        self._got: dict[int, io.BytesIO] = {}
        self.truncated = False

    def out(self, stream: IO[bytes] | None) -> bytes:
        """Return the output so far, without copying a long one."""
        kept = self._got.get(id(stream))
        return kept.getvalue() if kept else b""

    @property
    def has_enough(self) -> bool:
        """Whether the child's stderr contains `enough`."""
        return bool(self._enough) and self._enough in self.out(self._child.stderr)

    def until(self, deadline: float) -> bool:
        """Wait until the child ends or has printed `enough`; return whether that came before the deadline."""
        # The child's own end counts, not that of its children, which may hold its pipes open.
        exit_fd = os.pidfd_open(self._child.pid)
        try:
            with selectors.DefaultSelector() as ready:
                self._register(ready, exit_fd)
                return self._loop(ready, exit_fd, deadline)
        finally:
            os.close(exit_fd)

    def _register(self, ready: selectors.BaseSelector, exit_fd: int) -> None:
        ready.register(exit_fd, selectors.EVENT_READ)
        for stream in (self._child.stdout, self._child.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._got[id(stream)] = io.BytesIO()
            ready.register(stream, selectors.EVENT_READ)
        if self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
            ready.register(self._child.stdin, selectors.EVENT_WRITE)

    def _loop(self, ready: selectors.BaseSelector, exit_fd: int, deadline: float) -> bool:
        while (left := deadline - time.monotonic()) > 0:
            keys = [key for key, _ in ready.select(left)]
            for key in keys:
                if key.fileobj is not exit_fd:
                    self._transfer(ready, key)
            if any(key.fileobj is exit_fd for key in keys):
                self._drain_rest()
                return True
            if self.has_enough:
                return True
        return False

    def _transfer(self, ready: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        done = self._write(key.fd) if key.fileobj is self._child.stdin else not self._read(key.fileobj, key.fd)
        if done:
            ready.unregister(key.fileobj)
            if key.fileobj is self._child.stdin:
                self._child.stdin.close()

    def _write(self, fd: int) -> bool:
        """Write once; return True if nothing is left to write or the reader is gone."""
        try:
            self._data = self._data[os.write(fd, self._data) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        return not self._data

    def _read(self, stream: object, fd: int) -> bool:
        """Read once; return False at the end of the stream."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        kept = self._got[id(stream)]
        room = self._room - kept.tell()
        self.truncated = self.truncated or len(chunk) > room
        kept.write(chunk[: max(room, 0)])
        return bool(chunk)

    def _drain_rest(self) -> None:
        """Read what is left in the pipes after the child's end."""
        for stream in (self._child.stdout, self._child.stderr):
            if stream is None:
                continue
            for _ in range(1024):
                before = self._got[id(stream)].tell()
                if not self._read(stream, stream.fileno()) or self._got[id(stream)].tell() == before:
                    break
