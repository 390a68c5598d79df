"""The service manager and its journal, through systemd-python. Only imported where that is installed."""

import logging
import time

from systemd import daemon, journal

from steward.adapters.service import escaped, fields_of

_EVERY_S = 0.5


class SystemdNotifier:
    """Type=notify: readiness, the watchdog and the status line of `systemctl status`."""

    def __init__(self) -> None:
        self._fed = 0.0
        self._status = ""

    def ready(self) -> None:
        daemon.notify("READY=1")

    def alive(self, status: str) -> None:
        """Feed the watchdog; cheap enough to be called at every step."""
        now = time.monotonic()
        if now - self._fed >= _EVERY_S or status != self._status:
            self._fed, self._status = now, status
            daemon.notify(f"WATCHDOG=1\nSTATUS={status}")

    def stopping(self) -> None:
        daemon.notify("STOPPING=1")


class JournalHandler(logging.Handler):
    """Records with their fields (`journalctl NODE=n1`, `CASE=`, `JOB=`)."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = escaped(record.getMessage())
            if record.exc_info:
                message += "\n" + logging.Formatter().formatException(record.exc_info)
            fields = {key.upper(): str(value) for key, value in fields_of(record).items()}
            journal.send(message, PRIORITY=str(_priority(record.levelno)), LOGGER=record.name, **fields)
        except Exception:
            self.handleError(record)


def _priority(level: int) -> int:
    """syslog's numbers."""
    for at_least, number in ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6)):
        if level >= at_least:
            return number
    return 7
