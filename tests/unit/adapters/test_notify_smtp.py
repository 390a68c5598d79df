"""Mails over SMTP, against a real server, good and bad ones."""

import asyncio
import socket
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from steward.adapters.notify import Smtp
from steward.ports import Permanent, PortError, Retryable
from tests.builders.notify import a_message, an_event
from tests.fakes.until import FACT_S

TO = ("a@example.org", "b@example.org")


@dataclass
class Box:
    """Takes mails; `answers` are what it says to a recipient instead, by address, and `data` to the mail itself."""

    answers: dict[str, str] = field(default_factory=dict)
    data: str = "250 OK"
    envelopes: list[Any] = field(default_factory=list)

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.envelopes.append(envelope)
        return self.data


class Served(Controller):
    """On a socket that listens already: no other test can take its port."""

    def __init__(self, listener: socket.socket, box: Box) -> None:
        port = int(listener.getsockname()[1])
        super().__init__(box, hostname="127.0.0.1", port=port, ready_timeout=FACT_S)
        self._listener = listener

    def _create_server(self) -> Awaitable[asyncio.AbstractServer]:
        return self.loop.create_server(self._factory_invoker, sock=self._listener)


@contextmanager
def served(box: Box) -> Iterator[Smtp]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = Served(listener, box)
    server.start()
    try:
        yield smtp(server.port)
    finally:
        server.stop()


def smtp(port: int, timeout_s: float = FACT_S) -> Smtp:
    return Smtp(host="127.0.0.1", port=port, to=TO, sender="steward", cluster="big", timeout_s=timeout_s)


def refusal(box: Box) -> PortError:
    with served(box) as messenger, pytest.raises(PortError) as refused:
        messenger.send(a_message())
    assert "T0PSECRET" not in str(refused.value)
    return refused.value


def test_the_server_gets_one_mail_for_all_from_this_host() -> None:
    box = Box()
    with served(box) as messenger:
        messenger.send(a_message(last=an_event("node.lost", text="x\nBcc: all@example.org\n.\n")))
    [envelope] = box.envelopes
    mail = message_from_bytes(envelope.content, policy=policy.default)
    assert envelope.mail_from == f"steward@{socket.getfqdn()}" == mail["From"]
    assert envelope.rcpt_tos == list(TO)
    assert mail["Subject"].startswith("[big] error: node.lost n2")
    assert (mail["Bcc"], bool(mail["Date"])) == (None, True)
    assert "x Bcc: all@example.org ." in mail.get_content()


def test_a_mail_that_is_refused_for_now_is_tried_again() -> None:
    error = refusal(Box(data="451 T0PSECRET later"))
    assert (type(error), "code 451" in str(error)) == (Retryable, True)


def test_a_mail_that_is_refused_for_good_is_not() -> None:
    assert isinstance(refusal(Box(data="554 T0PSECRET spam")), Permanent)
    assert isinstance(refusal(Box(answers=dict.fromkeys(TO, "550 T0PSECRET nobody"))), Permanent)


def test_a_recipient_who_may_be_there_later_is_tried_again() -> None:
    answers = {TO[0]: "550 nobody", TO[1]: "450 greylisted"}
    assert isinstance(refusal(Box(answers=answers)), Retryable)


def test_one_recipient_of_two_that_is_refused_is_told() -> None:
    box = Box(answers={TO[1]: "550 nobody"})
    assert "refused 1 of 2 recipients; the others have it" in str(refusal(box))
    assert box.envelopes[0].rcpt_tos == [TO[0]]


def test_a_server_that_is_not_there_or_says_nothing_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = int(silent.getsockname()[1])
        with pytest.raises(Retryable, match="cannot take a mail now"):
            smtp(port, timeout_s=0.2).send(a_message())
    with pytest.raises(Retryable, match=rf"mail server at 127\.0\.0\.1:{port} cannot take a mail now"):
        smtp(port).send(a_message())
