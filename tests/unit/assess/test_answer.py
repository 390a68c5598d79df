"""Costs, savings, and the three forms in which they are shown."""

import json
import time
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from steward.assess.__main__ import main
from steward.assess.lines import lines
from steward.assess.outages import cause_of, outages
from steward.assess.page import page
from steward.assess.records import JobRun, NodeEvent
from tests.builders.assessed import DAY_S, SINCE, SITE, a_run, an_answer, an_event, kept

HOUR = 3600


def cost(found: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next(one for one in found["costs"] if one["kind"] == kind)


def saving(found: Mapping[str, Any], feature: str) -> Mapping[str, Any]:
    return next(one for one in found["savings"] if one["feature"] == feature)


def test_a_quiet_site_lost_and_saves_nothing() -> None:
    found = an_answer(a_run())
    assert found["lost_node_hours"] == 0
    assert [one["high"] for one in (*found["costs"], *found["savings"])] == [0.0] * 12


def test_a_lost_run_costs_at_most_itself_and_at_least_the_time_until_slurm_saw_it() -> None:
    lost = cost(an_answer(a_run(state="NODE_FAIL", seconds=10 * HOUR, nodes=4)), "node_failure")
    assert 4 * 0.08 < lost["low"] <= lost["middle"] <= lost["high"] <= 4 * 10.1


def test_what_failed_at_launch_costs_all_of_its_time() -> None:
    found = cost(an_answer(a_run(state="BOOT_FAIL", seconds=HOUR, nodes=2)), "launch")
    assert (found["low"], found["middle"], found["high"]) == (2.0, 2.0, 2.0)


def test_a_hang_costs_the_time_after_it_began_and_steward_would_have_saved_most_of_that() -> None:
    runs = [a_run(100 + number, start=number * 2 * HOUR) for number in range(5)]
    found = an_answer(*runs, a_run(1, "TIMEOUT", start=20 * HOUR, seconds=DAY_S, nodes=1))
    lost, saved = cost(found, "hang"), saving(found, "hang")
    assert 8 < lost["middle"] < 24
    assert lost["low"] / 2 < saved["low"] <= saved["middle"] < lost["high"] <= 24


def test_the_outage_of_a_node_that_slurm_took_out_is_saved_only_as_far_as_nodes_are_in_use() -> None:
    busy, idle = a_run(seconds=90 * DAY_S, nodelist="n2"), a_run(seconds=HOUR, nodelist="n2")
    event = an_event("n1", start=DAY_S, seconds=10 * HOUR, reason="Node unexpectedly rebooted")
    of_busy, of_idle = (saving(an_answer(run, events=[event]), "repair")["high"] for run in (busy, idle))
    assert 3 < of_busy < 5.1  # one of two nodes is in use
    assert of_idle < 0.1


def test_what_a_person_took_out_is_no_ones_saving_and_shown_apart() -> None:
    found = an_answer(a_run(seconds=90 * DAY_S), events=[an_event(reason="new firmware", user="root")])
    assert saving(found, "repair")["high"] == 0
    assert {one["cause"]: one["count"] for one in found["outages"]} == {
        "rebooted": 0,
        "silent": 0,
        "prolog": 0,
        "clean_up": 0,
        "others": 1,
    }


def test_a_job_submitted_again_by_its_user_waited_for_him_and_not_for_the_queue() -> None:
    again = a_run(2, start=10 * HOUR, submit=SINCE + 9 * HOUR)
    found = saving(an_answer(a_run(state="NODE_FAIL", seconds=HOUR), again), "resume")
    assert found["high"] == 8.0


def test_a_requeued_job_waited_at_most_slurms_two_minutes() -> None:
    again = a_run(1, start=10 * HOUR)
    found = saving(an_answer(a_run(1, "NODE_FAIL", seconds=HOUR), again), "resume")
    assert found["middle"] == pytest.approx(120 / HOUR, abs=0.001)


def test_events_of_one_node_that_touch_are_one_outage_with_the_first_ones_cause() -> None:
    parts = [an_event(seconds=600), an_event(start=600, seconds=600, reason="waits for a board", state="DRAIN")]
    (one,) = outages(parts, SITE)
    assert (one.cause, one.seconds) == ("silent", 1200)


def test_a_node_that_was_switched_off_was_not_out_of_service() -> None:
    assert outages([an_event(state="DOWN+POWERED_DOWN")], SITE) == []


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Not responding", "silent"),
        ("Node unexpectedly rebooted", "rebooted"),
        ("Kill task failed", "clean_up"),
        ("Prolog error", "prolog"),
        ("batch job complete failure", "clean_up"),
        ("Low RealMemory (reported:1 < 100.00% of configured:2)", "clean_up"),
        ("gres/gpu count reported lower than configured (3 < 4)", "clean_up"),
        ("NHC: check_fs_mount: /scratch", ""),
        ("", ""),
    ],
)
def test_slurms_own_reasons_are_known(reason: str, cause: str) -> None:
    assert cause_of(reason) == cause


def lemon_events() -> list[NodeEvent]:
    others = [an_event(f"n{node}", start=node * DAY_S) for node in range(2, 9)]
    return [*others, *(an_event("n1", start=(20 + each) * DAY_S) for each in range(9))]


def test_a_node_with_far_more_faults_than_the_others_is_a_lemon() -> None:
    runs = [a_run(node, nodelist=f"n{node}") for node in range(1, 40)]
    found = an_answer(*runs, events=lemon_events())
    assert [one["node"] for one in found["node_records"] if one["lemon"]] == ["n1"]
    assert [one["lemon"] for one in an_answer(*runs, events=lemon_events()[:7])["node_records"]] == [False] * 7


def test_what_a_lemon_destroyed_after_it_was_known_would_have_been_saved() -> None:
    runs = [a_run(node, nodelist=f"n{node}") for node in range(2, 40)]
    hits = [a_run(50 + each, "NODE_FAIL", start=(20 + each) * DAY_S - HOUR) for each in range(9)]
    assert saving(an_answer(*runs, *hits, events=lemon_events()), "lemons")["middle"] > 0.5
    assert saving(an_answer(*runs, *hits[:3], events=lemon_events()), "lemons")["high"] == 0


def a_bad_quarter() -> tuple[JobRun, ...]:
    hung = [a_run(100 + number, start=number * 2 * HOUR) for number in range(5)]
    return (
        *hung,
        a_run(1, "TIMEOUT", start=20 * HOUR, seconds=DAY_S),
        a_run(2, "NODE_FAIL", start=DAY_S, seconds=9 * HOUR, nodes=2, nodelist="n[1-2]", user="<b>&\x1b[31m"),
        a_run(3, "TIMEOUT", start=3 * DAY_S, name="other"),
        a_run(4, "REQUEUED", start=4 * DAY_S, partition=""),
    )


def test_the_sums_by_user_partition_and_node_are_the_whole() -> None:
    found = an_answer(*a_bad_quarter())
    for way in ("user", "partition", "node"):
        assert sum(one["node_hours"] for one in found[f"by_{way}"]) == pytest.approx(found["lost_node_hours"], abs=0.01)
    weeks = sum(sum(week["node_hours"].values()) for week in found["weeks"])
    assert weeks == pytest.approx(found["lost_node_hours"], abs=0.01)


def test_the_text_says_all_of_it_in_lines_that_a_terminal_can_show() -> None:
    text = "\n".join(lines(an_answer(*a_bad_quarter(), price=2.0)))
    for words in ("node failures", "money", "Lost by user", "ended at their time limit", "save_every", "<b>&?[31m"):
        assert words in text
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


class Pages(HTMLParser):
    """Checks that each tag is closed, and notes what is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.pictures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pictures += tag == "svg"
        self.fetched += [tag for name, _ in attrs if name in ("src", "href", "data")]
        if tag == "script":
            self.fetched.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_has_pictures_and_fetches_nothing() -> None:
    text = page(an_answer(*a_bad_quarter(), price=2.0))
    seen = Pages()
    seen.feed(text)
    assert (seen.open, seen.fetched) == ([], [])
    assert seen.pictures >= 4
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text
    assert "&lt;b&gt;&amp;?[31m" in text


def test_a_cluster_without_setbacks_has_a_page_too() -> None:
    Pages().feed(page(an_answer()))


def test_the_command_reads_what_was_kept_in_all_its_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = kept(tmp_path / "kept", a_bad_quarter(), [an_event(start=DAY_S + 9 * HOUR)])
    assert main(["--from", str(folder), "--json", "--per-node-hour", "2.5", "--html", str(tmp_path / "page.html")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cluster"], found["runs"], found["nodes"], found["per_node_hour"]) == ("hpc", 9, 2, 2.5)
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert main(["--from", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("What faults cost on hpc, ")


def test_a_long_run_is_in_many_answers_and_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = kept(tmp_path / "kept", [a_run(1, "NODE_FAIL", seconds=30 * DAY_S), a_run(2, seconds=None)])
    assert main(["--from", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], cost(found, "node_failure")["count"]) == (2, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--since", "90"], "--since 90: give an age such as 90d"),
        (["--since", "2999-01-01"], "not in the past"),
        (["--per-node-hour", "x"], "--per-node-hour x: give a number above 0"),
        (["--assume", "saves=0.5..2"], "give 0 < LOW <= HIGH < 1"),
        (["--assume", "luck=1..2"], "with a key of saves"),
        (["--from", "/nonexistent"], "No such file or directory; give a folder that --keep has written"),
    ],
)
def test_what_was_said_wrongly_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    output = capsys.readouterr()
    assert told in output.err
    assert (output.err.count("\n"), output.out) == (1, "")


def test_a_better_known_assumption_makes_the_interval_narrower() -> None:
    lost = a_run(state="NODE_FAIL", seconds=9 * HOUR)
    wide = cost(an_answer(lost), "node_failure")
    assert wide["high"] - wide["low"] > 1


def test_shares_of_the_middle_lie_in_order() -> None:
    for one in (*an_answer(*a_bad_quarter())["costs"], *an_answer(*a_bad_quarter())["savings"]):
        values = [one["low"], one["middle"], one["high"]]
        assert all(a <= b for a, b in pairwise(values)), one


FAKE_SLURM = """#!/bin/sh
case "$0 $*" in
*sacctmgr*|*sinfo*) echo "no such thing" >&2; exit 1 ;;
*sacct*--helpformat*) echo JobIDRaw User State Submit Start End NNodes JobName ;;
*sacct*) for word; do case $word in --delimiter=*) mark=${word#*=};; --format=*) fields=${word#*=};; esac; done
  printf '%s\\n' "$fields" "7,ann,NODE_FAIL,$AT,$AT,$((AT + 3600)),2,a,b" | sed "s/,/$mark/g" ;;
*scontrol*) echo "ClusterName = fake" ;;
esac
"""


def test_what_slurm_answers_can_be_kept_and_read_again_and_what_it_refuses_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("sacct", "sacctmgr", "scontrol", "sinfo"):
        (tmp_path / name).write_text(FAKE_SLURM)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("AT", str(int(time.time()) - 20 * DAY_S))
    folder = str(tmp_path / "kept")
    assert main(["--since", "30d", "--json", "--keep", folder]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cluster"], found["runs"], cost(found, "node_failure")["count"]) == ("fake", 1, 1)
    assert any("sacctmgr show failed: no such thing. No outage" in text for text in found["unknown"])
    assert main(["--json", "--from", folder]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["costs"] == found["costs"]
    assert main(["--keep", folder]) == 1
    assert "give another folder to --keep" in capsys.readouterr().err


def test_without_sacct_it_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([]) == 1
    told = "sacct does not start (No such file or directory): run this on a host that has Slurm's commands"
    assert capsys.readouterr().err == f"steward-assess: {told}\n"
