"""The `steward` command against a served API: what people see, what programs get, and how it fails."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from steward.cli import main
from steward.model.events import Event, Level
from steward.model.health import Severity
from steward.model.ids import JobId, NodeName
from steward.model.memory import Memory
from steward.workflows.doctor import bad
from steward.workflows.snapshot import HeadStandstill
from tests.builders.api_cluster import an_api_cluster
from tests.builders.cli import steward
from tests.builders.picture import a_cluster, n
from tests.fakes.api_bench import ApiBench


def test_the_status_is_a_few_plain_lines(api: ApiBench) -> None:
    api.show(a_cluster().drained("n2", "fans"))
    found = steward(api, "status")
    assert found.exit_code == 0
    assert "nodes     1 drained, 5 idle" in found.output
    assert "agents    6 of 6 connected" in found.output


def test_the_status_of_a_new_install_says_that_no_agent_has_come_yet(api: ApiBench) -> None:
    api.show(a_cluster().see(agents={}))
    assert "agents    none has come yet from 6 nodes" in steward(api, "status").output
    assert "no agent has come from this node yet" in steward(api, "nodes").output


def test_the_status_of_a_head_that_stands_still_says_since_when_and_why(api: ApiBench) -> None:
    api.show(a_cluster())
    api.standstill = HeadStandstill(since=api.clock.now() - 40.0, why="database is locked")
    (line,) = [line for line in steward(api, "status").output.splitlines() if line.startswith("decides")]
    assert "nothing since " in line
    assert line.endswith(": database is locked")


def test_the_status_says_loudly_when_actions_are_paused(api: ApiBench) -> None:
    assert "paused" not in steward(api, "status").output
    api.show(replace(a_cluster(), memory=Memory(paused=True)))
    assert "paused" in steward(api, "status").output


@pytest.mark.parametrize(
    "words", [["status"], ["nodes"], ["cases"], ["jobs"], ["doctor"], ["plan", "--dry-run"], ["explain", "n1"]]
)
def test_each_look_is_json_for_programs(api: ApiBench, words: Sequence[str]) -> None:
    before, after = steward(api, "--json", *words), steward(api, *words, "--json")
    assert (before.exit_code, after.exit_code) == (0, 0)
    assert before.output == after.output
    json.loads(before.output)


def test_a_piped_table_has_one_line_for_each_row(api: ApiBench) -> None:
    reason = "a very long reason " * 20
    api.show(a_cluster().drained("n1", reason).failing("n2", Severity.FATAL))
    lines = steward(api, "nodes").output.splitlines()
    assert len(lines) == 7
    assert reason.strip() in lines[1]
    assert all(line == line.rstrip() for line in lines)


def test_nodes_are_shown_with_their_verdict_and_what_comes_next(api: ApiBench) -> None:
    api.show(a_cluster(3).drained("n1", "fan").failing("n2", Severity.FATAL))
    header, first, second, third = steward(api, "nodes").output.splitlines()
    assert header.split()[:6] == ["NODE", "STATE", "VERDICT", "SINCE", "EVIDENCE", "NEXT"]
    assert " drained by admin " in first
    assert " degraded " in second
    assert "kernel_log: Xid 79" in second
    assert "replaced" in second
    assert " fine " in third
    assert {one["verdict"] for one in json.loads(steward(api, "nodes", "--json").output)} == {
        "foreign",
        "degraded",
        "fine",
    }


def test_only_nodes_that_are_not_fine_are_shown_on_request(api: ApiBench) -> None:
    api.show(a_cluster(3))
    assert "All nodes are fine." in steward(api, "nodes", "--wrong").output
    api.show(a_cluster(3).failing("n2", Severity.FATAL))
    assert len(steward(api, "nodes", "--wrong").output.splitlines()) == 2


def test_markup_in_a_nodes_reason_is_shown_as_it_is(api: ApiBench) -> None:
    api.show(a_cluster().drained("n1", "[bold red]x[/] :smile: [link=http://e]y"))
    assert "[bold red]x[/] :smile: [link=http://e]y" in steward(api, "nodes").output


def test_open_cases_are_shown_with_why(api: ApiBench) -> None:
    assert "No open case" in steward(api, "cases").output
    api.show(a_cluster().lost("n2"))
    found = steward(api, "cases").output
    assert "n2" in found
    assert "agent is gone" in found


def test_jobs_are_shown_with_their_last_decision(api: ApiBench) -> None:
    assert "No job" in steward(api, "jobs").output
    api.show(a_cluster().job().opted_in())
    assert "n[1-3]" in steward(api, "jobs").output


def test_events_are_chosen_by_node_kind_and_level(api: ApiBench) -> None:
    lost = Event(at=1.0, kind="node.lost", text="it is gone", level=Level.ERROR, node=n("n1"))
    api.store.add_events([lost, Event(at=2.0, kind="case.opened", text="a case", node=n("n1"))])
    assert "a case" not in steward(api, "events", "--level", "error").output
    assert "gone" not in steward(api, "events", "--kind", "case.").output
    assert steward(api, "events", "--node", "n2").output == "No such event.\n"


def test_events_are_one_line_each_or_one_json_each(api: ApiBench) -> None:
    event = Event(at=1.0, kind="node.lost", text="it is gone", level=Level.ERROR, node=NodeName("n1"))
    api.store.add_events([event, event])
    assert steward(api, "events").output.count("node.lost node=n1 it is gone\n") == 2
    records = [json.loads(line) for line in steward(api, "events", "--json").output.splitlines()]
    assert [record["seq"] for record in records] == [1, 2]


def test_the_plan_says_what_and_why(api: ApiBench) -> None:
    assert "Nothing to do" in steward(api, "plan", "--dry-run").output
    api.show(a_cluster().lost("n2"))
    assert "DownNode" in steward(api, "plan", "--dry-run").output


def test_the_plan_changes_nothing_and_needs_no_word_for_it(api: ApiBench) -> None:
    assert steward(api, "plan").output == steward(api, "plan", "--dry-run").output


def test_a_job_and_a_node_are_explained(api: ApiBench) -> None:
    api.show(a_cluster().job())
    assert "n1" in steward(api, "explain", "n1").output
    assert "did not ask" in steward(api, "explain", "7").output


def test_a_task_of_an_array_is_explained_by_the_id_that_squeue_shows(api: ApiBench) -> None:
    api.show(a_cluster().job(array_job_id=JobId(5), array_task=2))
    assert "did not ask" in steward(api, "explain", "5_2").output
    assert "did not ask" in steward(api, "explain", "job", "5_2").output
    assert "job 5_3 is not known" in steward(api, "explain", "5_3").output


def test_an_instance_group_is_explained(api: ApiBench) -> None:
    api.show_groups(an_api_cluster())
    assert "workers (Compute): InService" in steward(api, "explain", "workers").output


def test_what_is_not_there_is_one_line_and_status_1(api: ApiBench) -> None:
    found = steward(api, "explain", "n99")
    told = "Error: n99 is not a node of this cluster: `steward nodes` lists them\n"
    assert (found.exit_code, found.output) == (1, told)


def test_the_doctor_fails_when_something_is_bad(api: ApiBench) -> None:
    assert steward(api, "doctor").exit_code == 0
    api.lines.append(bad("store", "cannot be written", "make room"))
    found = steward(api, "doctor")
    assert found.exit_code == 1
    assert "make room" in found.output


def test_no_head_is_one_line_that_says_where_and_what_to_do() -> None:
    found = CliRunner().invoke(main, ["--url", "http://127.0.0.1:1", "status"])
    assert found.exit_code == 1
    assert found.output.count("\n") == 1
    assert "http://127.0.0.1:1" in found.output
    assert "systemctl status stewardd" in found.output


def test_the_heads_place_comes_from_the_environment(api: ApiBench) -> None:
    assert CliRunner().invoke(main, ["status"], env={"STEWARD_URL": api.url}).exit_code == 0


def test_help_and_version_need_no_head() -> None:
    assert "explain" in CliRunner().invoke(main, ["--help"]).output
    assert CliRunner().invoke(main, ["--version"]).exit_code == 0


def test_every_command_of_the_list_is_there_under_its_own_name() -> None:
    with click.Context(main) as context:
        names = main.list_commands(context)
        found = [main.get_command(context, name) for name in names]
    assert [command.name if command else None for command in found] == names


def test_a_client_without_a_settings_file_imports_neither_the_settings_nor_the_test_beds(api: ApiBench) -> None:
    program = f"""
import os, sys
os.environ["STEWARD_CONFIG"] = "/nonexistent"
from steward.cli import main
main(["--url", {api.url!r}, "status"], standalone_mode=False)
print(sorted({{"docker", "pydantic", "sqlalchemy", "steward_bed"}} & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert found.stdout.splitlines()[-1:] == ["[]"], found.stderr


@pytest.mark.parametrize(("word", "meant"), [("nods", "nodes"), ("explan", "explain"), ("config chek", "check")])
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(word: str, meant: str) -> None:
    told = CliRunner().invoke(main, word.split())
    assert told.exit_code == 2
    assert f"Did you mean '{meant}'?" in told.output


@pytest.mark.parametrize("words", [["-h"], ["jobs", "-h"], ["config", "check", "-h"]])
def test_every_command_has_a_short_option_for_its_help(words: Sequence[str]) -> None:
    assert "Usage: " in CliRunner().invoke(main, words).output


def test_every_line_of_a_list_of_commands_is_whole_on_a_narrow_terminal() -> None:
    assert list(cut_short(main)) == []


def cut_short(group: click.Group) -> Iterator[str]:
    """Commands whose first sentence does not fit beside their name in 80 columns."""
    inner = {name: group.get_command(click.Context(group), name) for name in group.list_commands(click.Context(group))}
    shown = {name: command for name, command in inner.items() if command is not None and not command.hidden}
    room = 80 - 6 - max(map(len, shown))
    for name, command in shown.items():
        if command.get_short_help_str(room).endswith("..."):
            yield name
        if isinstance(command, click.Group):
            yield from cut_short(command)
