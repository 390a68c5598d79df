"""Messages to people: by mail, or by a program of the site.

`webhook.py` is separate: most heads need no HTTP client.
"""

import json
import smtplib
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from email.utils import formatdate

from steward.adapters.process import Failed, run
from steward.model.notify import Message
from steward.ports import Permanent, PortError, Retryable
from steward.views.notify import document, fields, message_id

_MAX_OUTPUT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyCommand:
    """A program of the site that gets each message as JSON."""

    argv: tuple[str, ...] = field(repr=False)
    cluster: str
    timeout_s: float = 10.0

    def send(self, message: Message) -> None:
        """Pass the message to the program. Raises Retryable if it does not end with status 0 in time."""
        text = json.dumps(document(message, self.cluster)) + "\n"
        pipe(self.argv, text.encode(), self.timeout_s)


def pipe(argv: Sequence[str], text: bytes, timeout_s: float) -> None:
    """Run the program to its end with `text` on its standard input.

    Raises Retryable; the error quotes neither the arguments nor the output, which may contain secrets.
    """
    try:
        run(argv, timeout_s=timeout_s, input=text, max_bytes=_MAX_OUTPUT)
    except Failed as error:
        raise Retryable(f"{argv[0]} {_how_it_ended(error, timeout_s)}") from None


def _how_it_ended(error: Failed, timeout_s: float) -> str:
    if error.completed is None:
        return "cannot be started: is it there, and may SlurmUser run it?"
    if error.completed.seconds >= timeout_s:
        return f"did not end within {timeout_s:g} s"
    return f"ended with status {error.completed.returncode}"


_SEVEN_BIT = default.clone(cte_type="7bit")
"""For mail servers that take only ASCII: other texts are encoded."""


def mail(message: Message, to: Sequence[str], sender: str, cluster: str) -> EmailMessage:
    """Return the message as mail. Texts of events are hostile: in a header they are one printable line."""
    told = fields(message, cluster)
    found = EmailMessage(policy=_SEVEN_BIT)
    found["Subject"] = told["title"]
    found["From"] = sender
    found["To"] = ", ".join(to)
    found["Date"] = formatdate(message.last.at)
    found["X-Steward-Id"] = message_id(message, cluster)
    shown = ("kind", "node", "job", "case", "count", "since", "at")
    facts = "\n".join(f"{name}: {told[name]}" for name in shown if told[name])
    found.set_content(f"{told['text']}\n\n{facts}\n")
    return found


# A message as a mail over SMTP, to the head's own mail server or one of the site: neither TLS nor login.
#
# Not through the machine's sendmail: Postfix's and Exim's need the rights of another group or user, which the unit
# forbids (NoNewPrivileges).

_REFUSED = 500
"""The lowest SMTP code after which another try is useless (RFC 5321, 4.2.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smtp:
    """A sender of mail by SMTP; `timeout_s` limits each step.

    A `sender` without a domain gets this host's, since servers refuse one without.
    """

    host: str
    port: int
    to: tuple[str, ...]
    sender: str
    cluster: str
    timeout_s: float = 10.0

    def send(self, message: Message) -> None:
        """Send the mail; no error quotes the server.

        Raises Retryable if the server cannot be reached or cannot accept it now, Permanent if it refuses the mail or a
        recipient.
        """
        sender = self.sender if "@" in self.sender else f"{self.sender}@{socket.getfqdn()}"
        try:
            with smtplib.SMTP(self.host, self.port, timeout=self.timeout_s) as server:
                refused = server.send_message(mail(message, self.to, sender, self.cluster), sender, self.to)
        except smtplib.SMTPRecipientsRefused as error:
            raise self._refusal(min(code for code, _ in error.recipients.values()), "every recipient") from None
        except smtplib.SMTPResponseException as error:
            raise self._refusal(error.smtp_code, "the mail") from None
        except (OSError, smtplib.SMTPException) as error:
            raise Retryable(f"{self._place} cannot take a mail now ({type(error).__name__})") from None
        if refused:
            raise Permanent(f"{self._place} refused {len(refused)} of {len(self.to)} recipients; the others have it")

    def _refusal(self, code: int, what: str) -> PortError:
        kind = Permanent if code >= _REFUSED else Retryable
        return kind(f"{self._place} refused {what} (code {code})")

    @property
    def _place(self) -> str:
        return f"the mail server at {self.host}:{self.port}"
