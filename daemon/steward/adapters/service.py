"""What a daemon has of its machine: the service manager to notify, the system's clock, and log lines for
people and tools on stderr: time, level, who it is about as key=value, then the sentence. One line, always."""

import contextlib
import logging
import os
import re
import socket
import sys
import time
from typing import Any

from steward.adapters.log_pace import Paced
from steward.adapters.process import run
from steward.ports import Notifier, Retryable

_FED_EVERY_S = 0.5
_NOTIFY_S = 1.0


def notifier() -> Notifier:
    """Return systemd's notifier if systemd started this process (Type=notify), else one that does nothing."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    return SystemdNotifier(place) if place else NoNotifier()


class SystemdNotifier:
    """Readiness, the watchdog and the status line of `systemctl status`, by datagrams to systemd's socket."""

    def __init__(self, place: str) -> None:
        """Take the socket's path; one that begins with `@` is abstract."""
        self._place = f"\0{place[1:]}" if place.startswith("@") else place
        self._fed = 0.0
        self._status = ""

    def ready(self) -> None:
        self._tell("READY=1")

    def alive(self, status: str) -> None:
        """Feed the watchdog; cheap enough to be called at every step."""
        now = time.monotonic()
        if now - self._fed >= _FED_EVERY_S or status != self._status:
            self._fed, self._status = now, status
            self._tell(f"WATCHDOG=1\nSTATUS={status}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def _tell(self, words: str) -> None:
        # a service manager that takes nothing must not hold up the daemon: it says later that it lives
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(_NOTIFY_S)
            sock.sendto(words.encode(), self._place)


class NoNotifier:
    """Every method does nothing."""

    def ready(self) -> None:
        return

    def alive(self, status: str) -> None:
        return

    def stopping(self) -> None:
        return


def host_ends() -> bool:
    """Whether systemd is shutting this host down; False where it does not say so within a second."""
    try:
        return run(["systemctl", "is-system-running"], timeout_s=1.0, check=False).text.strip() == "stopping"
    except Retryable:
        return False


class SystemClock:
    def now(self) -> float:
        return time.time()


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FIRST = ("node", "case", "job")
_BARE = re.compile(r"^[\w.:/@%+,\[\]-]+$")


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that were given as `extra`: node, case and job come first, and values of None are left out."""
    given = {key: value for key, value in vars(record).items() if key not in _STANDARD and value is not None}
    first = {key: given.pop(key) for key in _FIRST if key in given}
    return {**first, **given}


def _quoted(value: object) -> str:
    text = str(value)
    return text if _BARE.match(text) else '"' + escaped(text).replace('"', '\\"') + '"'


def escaped(text: str) -> str:
    """Without line breaks and other control characters: a node's text must not forge a line of ours."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class KeyValueFormatter(logging.Formatter):
    """`2026-11-21T10:36:01.123+0100 info node=n1 case=c-7 drained`; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        local = time.localtime(record.created)
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{int(record.msecs):03d}{time.strftime('%z', local)}"
        about = "".join(f"{key}={_quoted(value)} " for key, value in fields_of(record).items())
        line = f"{stamp} {record.levelname.lower()} {about}{escaped(record.getMessage())}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


def log_to_stderr(level: int) -> None:
    """All logs of this process as key=value lines on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    log_to(handler, level)


def log_to(handler: logging.Handler, level: int) -> None:
    """All logs of this process to `handler` and nowhere else, a bounded number of each kind."""
    handler.addFilter(Paced())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
