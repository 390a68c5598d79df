"""The journal of systemd, through systemd-python. Only imported if that is installed."""

import logging

from systemd import journal

from steward.adapters.log_lines import escaped, fields_of


class JournalHandler(logging.Handler):
    """A handler that writes records with their fields (`journalctl NODE=n1`, `CASE=`, `JOB=`)."""

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
    """Return the syslog priority of a level."""
    for at_least, number in ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6)):
        if level >= at_least:
            return number
    return 7
