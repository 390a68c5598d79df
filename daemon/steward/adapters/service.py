"""The service manager of a daemon: readiness, the watchdog, and the shutdown of the host."""

import contextlib
import os
import socket
import time

from steward.adapters.process import run
from steward.ports import Notifier, Retryable

_FEED_EVERY_S = 0.5
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
        if now - self._fed >= _FEED_EVERY_S or status != self._status:
            self._fed, self._status = now, status
            self._tell(f"WATCHDOG=1\nSTATUS={status}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def _tell(self, words: str) -> None:
        # a service manager that reads nothing must not hold up the daemon, which sends its next heartbeat soon
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(_NOTIFY_S)
            sock.sendto(words.encode(), self._place)


class NoNotifier:
    """A notifier that does nothing."""

    def ready(self) -> None:
        return

    def alive(self, status: str) -> None:
        return

    def stopping(self) -> None:
        return


def host_ends() -> bool:
    """Return whether systemd is shutting this host down; False if it does not say so within a second."""
    try:
        return run(["systemctl", "is-system-running"], timeout_s=1.0, check=False).text.strip() == "stopping"
    except Retryable:
        return False
