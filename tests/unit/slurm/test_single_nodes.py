"""Single nodes through a process of their own: what it answers is believed only in its exact form."""

import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from steward.adapters.slurm.single_nodes import SingleNodes
from steward.adapters.slurm.versions import parse
from steward.model.ids import NodeName

VERSION = parse("slurm-wlm 22.05.8")
N1 = NodeName("n1")
ONE = "Node data as of 1795476302, record count 1\nNodeName=n1 Arch=x86_64 State=IDLE\n"
TWO = ONE.replace("n1", "n2")
LINE = "NodeName=n1 Arch=x86_64 State=IDLE"


def answering(text: str, *, patience_s: float = 30.0) -> SingleNodes:
    """A process that says this to every question."""
    program = f"import sys\nfor _ in sys.stdin: sys.stdout.write({text!r}); sys.stdout.flush()"
    return SingleNodes(argv=(sys.executable, "-I", "-S", "-c", program), patience_s=patience_s)


def ok(body: str, serial: int = 1, size: int | None = None) -> str:
    return f"ok {serial} {len(body) if size is None else size}\n{body}"


@pytest.fixture
def asked(request: pytest.FixtureRequest) -> Iterator[SingleNodes]:
    with closing(answering(request.param)) as single:
        yield single


@pytest.mark.parametrize("asked", [ok(ONE)], indirect=True)
def test_a_node_is_told_of_and_what_its_partitions_are_of(asked: SingleNodes) -> None:
    first, second = asked.read([N1], VERSION), asked.read([N1], VERSION)

    assert first is not None
    assert second is not None
    assert first.lines == {N1: LINE}
    assert first.parts == second.parts


@pytest.mark.parametrize("asked", [ok("", serial=7)], indirect=True)
def test_without_names_only_the_partitions_are_asked_for(asked: SingleNodes) -> None:
    told = asked.read((), VERSION)

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
def test_another_node_more_or_less_than_was_asked_for_is_not_believed(asked: SingleNodes) -> None:
    assert asked.read([N1], VERSION) is None


def test_who_does_not_answer_in_time_or_not_whole_is_ended_and_left_alone_for_a_while() -> None:
    with closing(answering(ok(ONE, size=len(ONE) + 1), patience_s=0.3)) as half:
        assert half.read([N1], VERSION) is None
        assert half.read([N1], VERSION) is None


def test_a_program_that_ends_or_is_not_there_is_no_harm() -> None:
    with closing(SingleNodes(argv=("/bin/true",))) as ended, closing(SingleNodes(argv=("/nonexistent",))) as absent:
        assert ended.read([N1], VERSION) is None
        assert absent.read([N1], VERSION) is None


def test_after_an_upgrade_of_slurm_nothing_is_the_same_as_before() -> None:
    with closing(answering(ok(ONE))) as single:
        first, second = single.read([N1], VERSION), single.read([N1], parse("slurm 24.11.5"))

    assert first is not None
    assert second is not None
    assert first.parts != second.parts
