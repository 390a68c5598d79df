"""A message to a program of the site's, as JSON on its standard input."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from steward.adapters.process import Failed, run
from steward.model.notify import Message
from steward.ports import Retryable
from steward.views.notify_text import document

_MAX_OUTPUT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    argv: tuple[str, ...] = field(repr=False)
    cluster: str
    timeout_s: float = 10.0

    def send(self, message: Message) -> None:
        """Raises Retryable when it does not end with status 0 in time."""
        text = json.dumps(document(message, self.cluster)) + "\n"
        pipe(self.argv, text.encode(), self.timeout_s)


def pipe(argv: Sequence[str], text: bytes, timeout_s: float) -> None:
    """Run it to its end with `text` on its standard input. Raises Retryable; the error quotes neither its arguments
    nor its output, which may hold secrets."""
    try:
        run(argv, timeout_s=timeout_s, input=text, max_bytes=_MAX_OUTPUT)
    except Failed as error:
        raise Retryable(f"{argv[0]} {_how(error, timeout_s)}") from None


def _how(error: Failed, timeout_s: float) -> str:
    if error.completed is None:
        return "cannot be started: is it there, and may SlurmUser run it?"
    if error.completed.seconds >= timeout_s:
        return f"did not end within {timeout_s:g} s"
    return f"ended with status {error.completed.returncode}"
