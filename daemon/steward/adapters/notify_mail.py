"""A message as a mail, through the machine's own sendmail."""

from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

from steward.adapters.notify_command import pipe
from steward.model.notify import Message
from steward.policy.notify_text import fields, message_id


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
        pipe(argv, bytes(self._mail(message)), self.timeout_s)

    def _mail(self, message: Message) -> EmailMessage:
        told = fields(message, self.cluster)
        mail = EmailMessage()
        mail["Subject"] = told["title"]
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["X-Steward-Id"] = message_id(message, self.cluster)
        shown = ("kind", "node", "job", "case", "count", "since", "at")
        facts = "\n".join(f"{name}: {told[name]}" for name in shown if told[name])
        mail.set_content(f"{told['text']}\n\n{facts}\n")
        return mail
