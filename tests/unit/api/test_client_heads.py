"""A client of two heads: what is asked again at the other head, and what is not."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from steward.client import Client, HeadError, Unreachable
from steward.model.access import FOLLOWS_HEADER

NOBODY = "http://127.0.0.1:1"


@dataclass
class Head:
    """A head that notes what it is asked. `deaf`: it takes a request and gives no answer; `follows`: it refuses."""

    url: str = ""
    deaf: bool = False
    follows: bool = False
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.asked.append((handler.command, handler.path, handler.headers.get("Authorization", "")))
        if self.deaf:
            return
        handler.send_response(503 if self.follows else 200)
        if self.follows:
            handler.send_header(FOLLOWS_HEADER, "yes")
        body = b'{"error": "no head leads now"}' if self.follows else b"{}"
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@contextlib.contextmanager
def serving(head: Head) -> Iterator[Head]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            head.answer(self)

        def do_POST(self) -> None:
            head.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        head.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield head
        finally:
            server.shutdown()


@pytest.fixture
def first() -> Iterator[Head]:
    with serving(Head()) as head:
        yield head


@pytest.fixture
def other() -> Iterator[Head]:
    with serving(Head()) as head:
        yield head


def client(*urls: str) -> Client:
    proofs = iter(range(100))
    return Client(",".join(urls), lambda _carries: f"proof {next(proofs)}")


def test_where_one_head_does_not_answer_the_other_is_asked_for_reads_and_for_changes(other: Head) -> None:
    ours = client(NOBODY, other.url)
    assert ours.object("/v1/status") == {}
    assert client(NOBODY, other.url).pause("a test") == {}
    assert [(kind, path) for kind, path, _ in other.asked] == [("GET", "/v1/status"), ("POST", "/v1/pause")]


def test_the_head_that_answered_last_is_asked_first(first: Head, other: Head) -> None:
    ours = client(first.url, other.url)
    first.deaf = True
    ours.object("/v1/status")
    first.deaf = False
    ours.object("/v1/status")
    assert (len(first.asked), len(other.asked)) == (1, 2)


def test_a_read_that_got_no_answer_is_asked_again_at_the_other_head(first: Head, other: Head) -> None:
    first.deaf = True
    assert client(first.url, other.url).object("/v1/status") == {}
    assert client(first.url, other.url).operate("DescribeCluster", {}) == {}
    assert (len(first.asked), len(other.asked)) == (2, 2)


def test_a_change_that_may_have_arrived_is_not_sent_twice(first: Head, other: Head) -> None:
    first.deaf = True
    with pytest.raises(Unreachable) as told:
        client(first.url, other.url).pause("a test")
    assert not told.value.is_unheard
    assert (len(first.asked), len(other.asked)) == (1, 0)


def test_a_change_with_a_token_may_be_sent_twice(first: Head, other: Head) -> None:
    first.deaf = True
    assert client(first.url, other.url).operate("BatchAddClusterNodes", {"ClientToken": "t1"}) == {}
    assert (len(first.asked), len(other.asked)) == (1, 1)


def test_a_change_that_a_follower_refused_is_sent_to_the_other_head_with_a_proof_of_its_own(
    first: Head, other: Head
) -> None:
    first.follows = True
    assert client(first.url, other.url).pause("a test") == {}
    assert [proof for *_, proof in (*first.asked, *other.asked)] == ["MUNGE proof 0", "MUNGE proof 1"]


def test_when_both_follow_one_line_says_so(first: Head, other: Head) -> None:
    first.follows = other.follows = True
    with pytest.raises(Unreachable, match=r"^no head leads now$") as told:
        client(first.url, other.url).pause("a test")
    assert told.value.is_unheard


def test_when_none_answers_one_line_names_both_and_what_else_to_do() -> None:
    ours = Client(f"{NOBODY},http://127.0.0.1:9", hint=lambda: "or run this on head2")
    told = r"^no head answers at \S+:1 or \S+:9: is stewardd running .*, or run this on head2$"
    with pytest.raises(Unreachable, match=told):
        ours.object("/v1/status")


def test_a_word_that_is_no_address_is_told_at_once(other: Head) -> None:
    with pytest.raises(HeadError, match="write http://HOST:PORT"):
        client("head1", other.url).object("/v1/status")
    assert not other.asked
