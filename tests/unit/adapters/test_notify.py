"""Messengers against a real HTTP server and a real command, good and bad ones."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from steward.adapters.notify import NotifyCommand, mail
from steward.adapters.webhook import Webhook
from steward.ports import Permanent, PortError, Retryable
from tests.builders.notify import a_message, an_event
from tests.fakes.until import FACT_S

SECRET = "T0PSECRET"


@dataclass
class Receiver:
    """Answers with `status`, or hangs until it is let go. `bodies` are what came."""

    status: int = 200
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


@contextmanager
def receiver(**how: object) -> Iterator[Receiver]:
    found = Receiver(**how)  # type: ignore[arg-type]

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            found.headers.append(dict(self.headers))
            if found.hangs:
                found.let_go.wait(FACT_S)
            self.send_response(found.status)
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/services/{SECRET}"
    try:
        yield found
    finally:
        found.let_go.set()
        server.shutdown()
        thread.join(10.0)
        server.server_close()


def webhook(url: str, template: str = "json", timeout_s: float = FACT_S) -> Webhook:
    return Webhook(url=url, cluster="big", template=template, secret=SECRET, timeout_s=timeout_s)


def refusal(messenger: Webhook | NotifyCommand) -> PortError:
    with pytest.raises(PortError) as caught:
        messenger.send(a_message())
    assert SECRET not in f"{caught.value!r} {messenger!r}"
    return caught.value


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


def test_a_webhook_gets_json_and_an_id_that_is_the_same_at_every_try() -> None:
    with receiver() as found:
        webhook(found.url).send(a_message())
        webhook(found.url).send(a_message(tries=1))
    assert json.loads(found.bodies[0])["kind"] == "node.lost"
    assert [one["Idempotency-Key"] for one in found.headers] == ["big-7", "big-7"]
    assert found.headers[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "kind"), [(500, Retryable), (503, Retryable), (429, Retryable), (404, Permanent), (302, Permanent)]
)
def test_a_receiver_that_refuses_is_asked_again_only_where_that_may_help(status: int, kind: type[PortError]) -> None:
    with receiver(status=status) as found:
        error = refusal(webhook(found.url))
    assert isinstance(error, kind)
    assert str(status) in str(error)
    assert len(found.bodies) == 1


def test_a_receiver_that_hangs_is_given_up_in_time() -> None:
    with receiver(hangs=True) as found:
        error = refusal(webhook(found.url, timeout_s=0.3))
    assert (type(error), str(error)) == (Retryable, "no answer within 0.3 s")


@pytest.mark.parametrize(
    ("url", "kind"),
    [(f"http://127.0.0.1:9/{SECRET}", Retryable), (f"nonsense/{SECRET}", Permanent), (f"ftp://h/{SECRET}", Permanent)],
)
def test_no_error_quotes_the_url(url: str, kind: type[PortError]) -> None:
    assert isinstance(refusal(webhook(url)), kind)


def test_a_mail_in_any_script_is_sent_in_ascii_and_read_as_it_was_written() -> None:
    sent = bytes(mail(a_message(last=an_event(text="job 7 (größe-学習) runs again")), ["a@b"], "s@b", "größe"))
    read = message_from_bytes(sent, policy=policy.default)
    assert sent.isascii()
    assert read["Subject"].startswith("[größe] error: node.fault n2")
    assert read.get_content().startswith("job 7 (größe-学習) runs again\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [("raise SystemExit(75)", "ended with status 75"), ("import time; time.sleep(1000)", "did not end within 0.5 s")],
)
def test_a_program_that_fails_or_hangs_is_told_without_what_it_printed(tmp_path: Path, text: str, why: str) -> None:
    path = program(tmp_path / "tell", f"import sys\nprint({SECRET!r}, file=sys.stderr, flush=True)\n{text}")
    timeout_s = 0.5 if "sleep" in text else FACT_S
    command = NotifyCommand(argv=(str(path), f"--token={SECRET}"), cluster="", timeout_s=timeout_s)
    assert why in str(refusal(command))


def test_a_command_reads_the_message_as_json(tmp_path: Path) -> None:
    path = program(tmp_path / "tell", f"import sys; open({str(tmp_path / 'got')!r}, 'w').write(sys.stdin.read())")
    NotifyCommand(argv=(str(path),), cluster="big", timeout_s=FACT_S).send(a_message())
    told = json.loads((tmp_path / "got").read_text())
    assert (told["node"], told["count"], told["level"]) == ("n2", 2, "error")


def test_a_command_that_is_not_there_says_so() -> None:
    assert "cannot be started" in str(refusal(NotifyCommand(argv=("/nowhere/tell",), cluster="")))
