"""`steward checks`: every check, its settings and its results."""

import json

from steward.model.health import Finding, Outcome, Severity
from tests.builders.cli import steward
from tests.builders.picture import Picture, a_cluster
from tests.fakes.api_bench import ApiBench

PASSED = frozenset({"disk", "memory"})


def row(output: str, check: str) -> str:
    (found,) = [line for line in output.splitlines() if line.startswith(f"{check} ")]
    return found


def mixed() -> Picture:
    full = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text="/ full", at=a_cluster().now)
    xid = Finding(check="kernel_log.xid79", outcome=Outcome.FAILED, severity=Severity.FATAL, event=True)
    site = Finding(check="site.scratch", outcome=Outcome.UNKNOWN, text="timed out")
    picture = a_cluster(5).agent("n1", passed=PASSED).agent("n2", passed=PASSED, skipped=frozenset({"ib.state"}))
    return picture.agent("n3", findings=(full, xid)).agent("n4", findings=(full, site))


def test_each_check_tells_its_settings_and_its_results_over_the_cluster(api: ApiBench) -> None:
    api.show(mixed())
    shown = steward(api, "checks").output
    disk = row(shown, "disk")
    for part in (
        "drain",
        "15 s",
        "statvfs",
        "2 passed, 2 failed (n[3-4])",
        "disk.full_percent 90",
        "file system is full",
    ):
        assert part in disk
    assert "1 skipped" in row(shown, "ib.state")
    assert "1 failed (n3)" in row(shown, "kernel_log.xid79")
    assert "1 unknown (n4)" in row(shown, "site.scratch")
    assert " 1 h " in row(shown, "memory")


def test_only_failing_checks_are_shown_on_request(api: ApiBench) -> None:
    api.show(mixed())
    lines = steward(api, "checks", "--failing").output.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["disk", "kernel_log.xid79", "site.scratch"]
    api.show(a_cluster())
    assert "No check fails on any node." in steward(api, "checks", "--failing").output


def test_one_node_shows_each_check_as_it_stands_there(api: ApiBench) -> None:
    api.show(mixed())
    shown = steward(api, "checks", "n3").output
    assert "failed (degraded)" in row(shown, "disk")
    assert "/ full" in row(shown, "disk")
    assert "passed" in row(steward(api, "checks", "n1").output, "memory")
    found = {one["id"]: one["outcome"] for one in json.loads(steward(api, "checks", "n2", "--json").output)}
    assert (found["disk"], found["ib.state"], found["gpu"]) == ("passed", "skipped", None)


def test_a_node_that_is_not_there_is_an_error_of_one_line(api: ApiBench) -> None:
    found = steward(api, "checks", "n99")
    assert found.exit_code == 1
    assert found.output == "Error: n99 is not a node of this cluster: `steward nodes` lists them\n"


def test_json_has_numbers_with_units_and_the_nodes_that_fail(api: ApiBench) -> None:
    api.show(mixed())
    found = {one["id"]: one for one in json.loads(steward(api, "checks", "--json").output)}
    assert [one["node"] for one in found["disk"]["failing"]] == ["n3", "n4"]
    assert found["disk"]["numbers"][0]["unit"] == "%"
    assert found["kernel_log.xid79"]["mode"] == "drain"
