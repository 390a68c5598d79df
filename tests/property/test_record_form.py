"""steward-slurm's answers, read strictly: whatever was cut off or written by somebody else tells of nothing."""

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.slurm import record_form, records
from steward.adapters.slurm.record_form import JOB, Garbled
from steward.ports import Retryable
from tests.fakes.reader_lines import escaped, job_line, jobs

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60) | st.sampled_from(
    ["x\tRUNNING", "a\n77\tx\tFAILED", "\\0a", "\\", "\x1f\x85"]
)
LINES = st.lists(st.builds(job_line, id=st.integers(1, 10**9), name=TEXT, comment=TEXT, admin_comment=TEXT), max_size=4)


@given(TEXT)
def test_any_text_comes_back(text: str) -> None:
    assert record_form.unescaped(escaped(text)) == text
    job = records.job_of(job_line(name=text, comment=text, account=text, features=text))
    assert (job.name, job.comment, job.account, job.features) == (text,) * 4


@given(LINES, st.data())
def test_an_answer_that_is_cut_off_is_not_whole_and_not_believed(lines: list[str], data: st.DataObject) -> None:
    whole = jobs(*lines).encode()
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    told = record_form.split_answer(whole, "jobs", JOB)
    assert told is not None
    assert told.lines == lines
    assert record_form.is_whole(bytearray(whole))
    assert not record_form.is_whole(bytearray(part))
    with contextlib.suppress(Garbled):
        raise AssertionError(record_form.split_answer(part, "jobs", JOB))


@given(LINES, st.data())
def test_an_answer_with_a_changed_byte_is_refused_or_tells_of_as_many_well_formed_jobs(
    lines: list[str], data: st.DataObject
) -> None:
    whole = bytearray(jobs(*lines).encode())
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    _refused_or_jobs(bytes(whole), len(lines))


@given(st.binary(max_size=300))
def test_no_bytes_do_harm(got: bytes) -> None:
    record_form.is_whole(bytearray(got))
    _refused_or_jobs(got, 0)
    _refused_or_jobs(jobs().encode() + got, 0)


@given(st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=300))
def test_no_line_does_harm(line: str) -> None:
    for read in (records.job_of, records.node_of):
        with contextlib.suppress(Garbled, Retryable):
            read(line)


def _refused_or_jobs(got: bytes, count: int) -> Any:
    try:
        told = record_form.split_answer(got, "jobs", JOB)
        if told is not None and told.lines is not None:
            assert len([records.job_of(line) for line in told.lines]) == count
    except (Garbled, Retryable):
        return
