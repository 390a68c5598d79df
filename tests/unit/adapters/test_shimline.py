"""The lines between shim and agent."""

import pytest

from steward.adapters.wire.shimline import (
    AskLine,
    BadLine,
    EndedLine,
    ExitLine,
    LogLine,
    OptedLine,
    Written,
    answer_line,
    ok_line,
    parse_request,
)
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


def test_the_script_of_a_runs_base_tells_its_sizes() -> None:
    found = parse_request(OPTED.replace(b"\n", b" elastic=8:2,grace=30\n"))
    assert isinstance(found, OptedLine)
    assert found.elastic == "8:2,grace=30"
    with pytest.raises(BadLine, match="is no MAX:STEP"):
        parse_request(OPTED.replace(b"\n", b" elastic=8:2;reboot\n"))


def test_a_step_that_its_srun_does_not_wait_for_is_told_from_others() -> None:
    steps = [parse_request(OPTED.replace(b"\n", more + b"\n")) for more in (b"", b" detached=yes")]
    assert [step.detached for step in steps if isinstance(step, OptedLine)] == [False, True]


@pytest.mark.parametrize(("more", "says"), [(b" job=13", "job is given twice"), (b" job", "'job' is not key=value")])
def test_a_field_that_is_given_twice_and_a_word_that_is_none_are_two_messages(more: bytes, says: str) -> None:
    with pytest.raises(BadLine, match=says):
        parse_request(ASK.replace(b"\n", more + b"\n"))


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


def test_what_an_attempt_or_a_step_without_input_adds_is_read() -> None:
    opted = parse_request(OPTED[:-1] + b" step=3 attempt=2\n")
    ask = parse_request(ASK[:-1] + b" replay=no own=yes script=gone\n")
    assert isinstance(opted, OptedLine)
    assert isinstance(ask, AskLine)
    unbegun = parse_request(ASK[:-1] + b" script=unbegun\n")
    assert isinstance(unbegun, AskLine)
    assert (unbegun.script_gone, unbegun.script_unbegun) == (False, True)
    assert (opted.step, opted.attempt, ask.replay, ask.own, ask.script_gone) == (3, 2, False, True, True)


def test_where_a_failed_step_ran_and_for_how_long_is_read() -> None:
    ask = parse_request(ASK[:-1] + b" nodes=n[1-3,7],m-01 age=12\n")
    assert isinstance(ask, AskLine)
    assert (ask.nodes, ask.age) == ("n[1-3,7],m-01", 12)
    with pytest.raises(BadLine):
        parse_request(ASK[:-1] + b" nodes=n1;rm\n")


def test_what_a_step_may_have_written_is_read() -> None:
    files = (Written(inode=2**64 - 1, begin=0, end=90), Written(inode=8, begin=5, end=5))
    ask = parse_request(ASK[:-1] + b" log=18446744073709551615:0:90,8:5:5\n")
    assert isinstance(ask, AskLine)
    assert ask.written == files
    ended = parse_request(b"steward/1 ended job=7 step=3 restart=1 log=8:5:5\n")
    assert ended == EndedLine(job=JobId(7), step="3", restart=1, written=files[1:])


@pytest.mark.parametrize("files", [b"8:5", b"8:5:5,", b"8:5:-5", b"8:5:5,8:5:5,8:5:5", b"8:5:" + b"9" * 19, b""])
def test_what_no_step_can_have_written_is_refused(files: bytes) -> None:
    with pytest.raises(BadLine):
        parse_request(b"steward/1 ended job=7 step=3 restart=1 log=" + files + b"\n")


def test_a_failed_task_is_read() -> None:
    line = b"steward/1 exit job=7 step=3 restart=1 task=12 status=9\n"
    assert parse_request(line) == ExitLine(job=JobId(7), step="3", restart=1, task=12, status=9)


def test_the_path_of_the_output_is_read_byte_by_byte() -> None:
    read = parse_request(b"steward/1 log job=7 restart=1 size=12 out=/a%20b%25/%C3%A9.out\n")
    assert read == LogLine(job=JobId(7), restart=1, size=12, out="/a b%/é.out")


@pytest.mark.parametrize("out", [b"relative", b"/a%0Ab", b"/a%00b", b""])
def test_what_can_be_no_output_file_is_refused(out: bytes) -> None:
    with pytest.raises(BadLine):
        parse_request(b"steward/1 log job=7 restart=1 out=" + out + b"\n")


def test_an_answer_leaves_out_what_there_is_no_room_for() -> None:
    line = ok_line({"resume_count": "2", "resume_reason": "x y" * 400, "last_step": "9", "culprits": "n\u00e9\n"})
    assert line == b"steward/1 ok resume_count=2 last_step=9 culprits=n?%20\n"
