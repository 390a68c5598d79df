"""A message as a mail, given to a program of the site's that takes it on its standard input."""

from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path

from steward.adapters.notify.command import pipe
from steward.model.notify import Message
from steward.views.notify_text import fields, message_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Recipients are arguments behind `--`: none can be read as an option."""

    sendmail: Path
    to: tuple[str, ...]
    sender: str
    cluster: str
    timeout_s: float = 10.0

    def send(self, message: Message) -> None:
        """Raises Retryable when sendmail does not take it in time."""
        argv = [str(self.sendmail), "-i", "-f", self.sender, "--", *self.to]
        pipe(argv, bytes(mail(message, self.to, self.sender, self.cluster)), self.timeout_s)


def mail(message: Message, to: Sequence[str], sender: str, cluster: str) -> EmailMessage:
    """Texts of events are hostile: in a header they are one printable line."""
    told = fields(message, cluster)
    found = EmailMessage()
    found["Subject"] = told["title"]
    found["From"] = sender
    found["To"] = ", ".join(to)
    found["Date"] = formatdate(message.last.at)
    found["X-Steward-Id"] = message_id(message, cluster)
    shown = ("kind", "node", "job", "case", "count", "since", "at")
    facts = "\n".join(f"{name}: {told[name]}" for name in shown if told[name])
    found.set_content(f"{told['text']}\n\n{facts}\n")
    return found
