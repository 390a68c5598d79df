"""The lines between shim and agent."""

import pytest

from steward.adapters.shimline import AskLine, BadLine, OptedLine, answer_line, parse_request
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode

ASK = b"steward/1 ask kind=batch job=12 step=batch uid=1000 mode=1 attempt=1 restart=0 status=256\n"
OPTED = b"steward/1 opted job=12 uid=1000 mode=any:3 restart=2 batch=1\n"


def test_an_ask_is_read_field_by_field() -> None:
    assert parse_request(ASK) == AskLine(
        kind=AskKind.BATCH,
        job=JobId(12),
        step="batch",
        uid=1000,
        mode=ResumeMode.parse("1"),
        attempt=1,
        restart=0,
        status=256,
    )


def test_opted_is_read_and_keys_that_are_not_known_are_ignored() -> None:
    expected = OptedLine(job=JobId(12), uid=1000, mode=ResumeMode.parse("any:3"), restart=2)
    assert parse_request(OPTED) == expected


@pytest.mark.parametrize("key", ["kind", "job", "step", "uid", "mode", "attempt", "restart", "status"])
def test_an_ask_without_one_of_its_fields_is_malformed(key: str) -> None:
    words = [word for word in ASK.split() if not word.startswith(key.encode() + b"=")]
    with pytest.raises(BadLine, match=key):
        parse_request(b" ".join(words) + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        ASK[:-1],
        ASK.replace(b"steward/1", b"steward/2"),
        ASK.replace(b" ask ", b" tell "),
        ASK.replace(b"job=12", b"job=-1"),
        ASK.replace(b"job=12", b"job=1e3"),
        ASK.replace(b"job=12", b"job=99999999999"),
        ASK.replace(b"job=12", b"job=12 job=13"),
        ASK.replace(b"mode=1", b"mode=any:0"),
        ASK.replace(b"kind=batch", b"kind=other"),
        ASK.replace(b"step=batch", b"step=;reboot"),
        ASK.replace(b"status=256", b"status=65536"),
        ASK.replace(b"job=12", b"job=\xd9\xa1"),
        ASK.replace(b"job=12", b"job=1\x002"),
        ASK.replace(b"\n", b" x=" + b"y" * 1024 + b"\n"),
    ],
)
def test_a_line_that_is_not_of_the_protocol_is_refused(line: bytes) -> None:
    with pytest.raises(BadLine):
        parse_request(line)


def test_answers_are_single_lines() -> None:
    names = frozenset({NodeName("n4"), NodeName("n3")})
    assert answer_line(Answer.RETRY, names) == b"steward/1 retry exclude=n3,n4\n"
    assert answer_line(Answer.RETRY, frozenset()) == b"steward/1 retry\n"
    assert answer_line(Answer.REQUEUE, names) == b"steward/1 requeue\n"
    assert answer_line(Answer.STOP, names) == b"steward/1 stop\n"


def test_an_exclude_list_too_long_for_a_line_is_left_out() -> None:
    assert answer_line(Answer.RETRY, frozenset(NodeName(f"node{n:04}") for n in range(200))) == b"steward/1 retry\n"
