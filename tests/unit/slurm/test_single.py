"""Single nodes and jobs through a process of their own: what it answers is believed only in its exact form."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from steward.adapters.slurm.single import Single, excluded
from steward.adapters.slurm.versions import parse
from steward.model.ids import JobId, NodeName

VERSION = parse("slurm-wlm 22.05.8")
N1 = NodeName("n1")
ONE = "Node data as of 1795476302, record count 1\nNodeName=n1 Arch=x86_64 State=IDLE\n"
TWO = ONE.replace("n1", "n2")
LINE = "NodeName=n1 Arch=x86_64 State=IDLE"


def answering(text: str, *, patience_s: float = 30.0) -> Single:
    """A process that says this to every question."""
    program = f"import sys\nfor _ in sys.stdin: sys.stdout.write({text!r}); sys.stdout.flush()"
    return Single(argv=(sys.executable, "-I", "-S", "-c", program), patience_s=patience_s)


def ok(body: str, serial: int = 1, size: int | None = None) -> str:
    return f"ok {serial} {len(body) if size is None else size}\n{body}"


@pytest.fixture
def asked(request: pytest.FixtureRequest) -> Iterator[Single]:
    with closing(answering(request.param)) as single:
        yield single


@pytest.mark.parametrize("asked", [ok(ONE)], indirect=True)
def test_a_node_is_told_of_and_what_its_partitions_are_of(asked: Single) -> None:
    first, second = asked.nodes([N1], VERSION), asked.nodes([N1], VERSION)

    assert first is not None
    assert second is not None
    assert first.lines == {N1: LINE}
    assert first.parts == second.parts


@pytest.mark.parametrize("asked", [ok("", serial=7)], indirect=True)
def test_without_names_only_the_partitions_are_asked_for(asked: Single) -> None:
    told = asked.nodes((), VERSION)

    assert told is not None
    assert told.lines == {}


@pytest.mark.parametrize(
    "asked",
    [
        ok(TWO),
        ok(ONE + TWO),
        ok(TWO + ONE),
        ok(""),
        ok(ONE.replace("count 1", "count 0")),
        ok(ONE.replace("record count 1\n", "record count 1\nfoul")),
        ok("n1 is fine\n"),
        "no\n",
        "ok 0 0\n",
    ],
    indirect=True,
)
def test_another_node_more_or_less_than_was_asked_for_is_not_believed(asked: Single) -> None:
    assert asked.nodes([N1], VERSION) is None


A_JOB = "JobId=7 JobName=x JobState=RUNNING Reason=None RunTime=00:00:0{} LastSchedEval=179{} NodeList=n1 "


def told(*texts: str) -> str:
    return ok("".join(f"{len(text)}\n{text}" for text in texts), serial=0)


def of_jobs(answer: str, *ids: int) -> Mapping[JobId, bytes]:
    with closing(answering(answer)) as single:
        return single.jobs([JobId(id) for id in ids], VERSION)


def test_the_text_of_a_job_is_the_same_while_only_time_goes_on() -> None:
    first, later = of_jobs(told(A_JOB.format(1, 1)), 7), of_jobs(told(A_JOB.format(2, 9)), 7)
    failed = of_jobs(told(A_JOB.format(2, 9).replace("RUNNING", "FAILED")), 7)

    assert list(first) == [7]
    assert first == later
    assert first != failed


@pytest.mark.parametrize(
    "text", ["", A_JOB.replace("x", "x JobState=FAILED"), A_JOB.replace("x", "\n NodeList=n9"), "JobId=7 NodeList=n1"]
)
def test_a_job_that_is_not_told_of_or_in_whose_text_somebody_may_have_written_is_left_out(text: str) -> None:
    assert list(of_jobs(told(A_JOB, text), 6, 7)) == [6]


def test_what_a_job_excludes_is_read_only_where_nobody_else_can_have_written_it() -> None:
    assert excluded(b"JobName=x ReqNodeList=(null) ExcNodeList=n[1-3] NodeList=n4 ") == "n[1-3]"
    assert excluded(b"JobName=x ExcNodeList=n9 ReqNodeList=(null) ExcNodeList=n1 NodeList=n4 ") is None
    assert excluded(b"JobId=8 ArrayJobId=7 ArrayTaskId=1 JobName=x ExcNodeList=n1 NodeList=n4 ") is None
    assert excluded(b"JobName=x NodeList=n4 ") is None
    assert excluded(b"JobName=x ReqNodeList=(null) ExcNodeList=n1 n2 NodeList=n4 ") is None, "only its first name"
    assert excluded(b"JobName=x ExcNodeList=n9 ReqNodeList=(null) ExcNodeList=n1 n2 NodeList=n4 ") is None


@pytest.mark.parametrize("answer", [told(A_JOB), told(A_JOB, A_JOB, A_JOB), ok(f"999\n{A_JOB}", 0), ok("x"), "no\n"])
def test_an_answer_of_another_form_tells_of_no_job(answer: str) -> None:
    assert of_jobs(answer, 6, 7) == {}


def test_who_does_not_answer_in_time_or_not_whole_is_ended_and_left_alone_for_a_while() -> None:
    with closing(answering(ok(ONE, size=len(ONE) + 1), patience_s=0.3)) as half:
        assert half.nodes([N1], VERSION) is None
        assert half.nodes([N1], VERSION) is None


def test_one_that_failed_is_asked_again_soon_and_ever_more_rarely(tmp_path: Path) -> None:
    """Each start of the program leaves a letter; the sixth answers."""
    starts, now = tmp_path / "starts", 0.0
    program = (
        f"import sys\nwith open({str(starts)!r}, 'a+') as file: count = file.write('x') + file.tell() - 1\n"
        f"for _ in sys.stdin: print({ok(ONE)!r} if count == 6 else 'no\\n', end='', flush=True)"
    )
    argv = (sys.executable, "-I", "-S", "-c", program)
    with closing(Single(argv=argv, patience_s=30.0, monotonic=lambda: now)) as single:
        begun = list[float]()
        while single.nodes([N1], VERSION) is None:
            if starts.stat().st_size > len(begun):
                begun.append(now)
            now += 1.0
    assert begun == [0.0, 5.0, 15.0, 35.0, 75.0]


def test_a_program_that_ends_or_is_not_there_is_no_harm() -> None:
    with closing(Single(argv=("/bin/true",))) as ended, closing(Single(argv=("/nonexistent",))) as absent:
        assert ended.nodes([N1], VERSION) is None
        assert absent.nodes([N1], VERSION) is None


def test_after_an_upgrade_of_slurm_nothing_is_the_same_as_before() -> None:
    with closing(answering(ok(ONE))) as single:
        first, second = single.nodes([N1], VERSION), single.nodes([N1], parse("slurm 24.11.5"))

    assert first is not None
    assert second is not None
    assert first.parts != second.parts
