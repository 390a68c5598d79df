"""What Slurm's commands print becomes runs, events and facts; what cannot be read is counted, and never a crash."""

import pytest

from steward.assess.records import (
    EVENT_FIELDS,
    JOB_FIELDS,
    Rows,
    job_runs,
    node_events,
    node_names,
    settings,
    shapes,
    unix_time,
)
from tests.builders.assessed import MARK, a_run, an_event, event_line, job_line

HEAD = MARK.join(JOB_FIELDS)


def test_a_line_of_sacct_is_a_run() -> None:
    run = a_run(7, "NODE_FAIL", nodes=2, nodelist="n[1-2]", name="a|b")
    assert list(job_runs(Rows([HEAD, job_line(run)], JOB_FIELDS))) == [run]


def test_a_run_that_goes_on_has_no_end_and_a_job_that_never_began_is_no_run() -> None:
    (run,) = job_runs(Rows([HEAD, job_line(a_run(seconds=None)), MARK.join(["1"] * 5 + ["Unknown"] * 8)], JOB_FIELDS))
    assert run.end is None


def test_who_cancelled_a_job_is_no_part_of_its_state() -> None:
    (run,) = job_runs(Rows([HEAD, job_line(a_run(state="CANCELLED by 1000"))], JOB_FIELDS))
    assert run.state == "CANCELLED"


def test_a_field_that_this_slurm_does_not_have_is_empty() -> None:
    fields = [field for field in JOB_FIELDS if field != "FailedNode"]
    row = job_line(a_run(failed_node="x")).replace(f"{MARK}x{MARK}", MARK)
    (run,) = job_runs(Rows([MARK.join(fields), row], JOB_FIELDS))
    assert (run.failed_node, run.name) == ("", "train")


def test_a_name_with_lines_of_its_own_forges_no_run() -> None:
    name = "x\n" + "|".join(["9", "root", "gpu", "NODE_FAIL", "1", "1", "2", "1", "1", "", "n1", "n1", "y"])
    rows = Rows([HEAD, *job_line(a_run(name=name)).split("\n")], JOB_FIELDS)
    assert [run.job for run in job_runs(rows)] == [1]
    assert rows.unread == 1


def test_another_programs_words_are_told_apart_from_an_answer() -> None:
    with pytest.raises(ValueError, match="JobIDRaw"):
        list(Rows(["sacct: error: slurm_persist_conn_open: Connection refused\n"], JOB_FIELDS))


def test_an_empty_answer_has_no_rows() -> None:
    assert list(Rows([], JOB_FIELDS)) == []


def test_events_of_the_whole_cluster_are_no_events_of_a_node() -> None:
    head = MARK.join(EVENT_FIELDS)
    found = node_events(Rows([head, event_line(an_event(node="")), event_line(an_event("n3"))], EVENT_FIELDS))
    assert [one.node for one in found] == ["n3"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1750000000", 1_750_000_000),
        ("2025-06-15T15:06:40", 1_750_000_000),
        ("Unknown", None),
        ("None", None),
        ("", None),
        ("0", None),
        ("2025-02-30T00:00:00", None),
        ("99999999999999999999", None),
        ("²", None),
    ],
)
def test_a_time_is_unix_seconds_or_a_date_of_utc(text: str, seconds: int | None) -> None:
    assert unix_time(text) == seconds


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[1-3,7]", ("n1", "n2", "n3", "n7")),
        ("b1[9-11],login", ("b19", "b110", "b111", "login")),
        ("r[1-2]n[01-02]", ("r1n01", "r1n02", "r2n01", "r2n02")),
        ("None assigned", ()),
        ("", ()),
        ("n[3-1]", ()),
        ("n[1-99999999]", ()),
        ("n[", ()),
    ],
)
def test_a_list_of_nodes_is_read_as_slurm_writes_it(text: str, names: tuple[str, ...]) -> None:
    assert node_names(text) == names


def test_settings_and_sizes_of_nodes_are_read() -> None:
    assert settings(["SlurmdTimeout           = 300 sec", "", "PluginDir = /a=b"])["PluginDir"] == "/a=b"
    assert shapes(["n1|64|gpu:a100:4(S:0-1),gpu:l4:2,fs:1", "n2|8|(null)", "odd"]) == {"n1": (64, 6), "n2": (8, 0)}
