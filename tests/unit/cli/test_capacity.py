"""`steward group`, `steward node`, `steward cluster` against a served API whose orders are carried out at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from steward.cli import main
from steward.cli.cluster import cluster
from steward.cli.group import group
from steward.cli.node import node
from steward.model.group import Goal, GroupStatus, Role
from steward.model.memory import Memory
from steward.model.slot import Hitch, Purpose, SlotStep
from tests.builders.api_cluster import ID, ROLE, an_api_cluster, nothing
from tests.builders.cli import Run, as_root
from tests.builders.picture import n
from tests.fakes.api_bench import ApiBench


@pytest.fixture
def run(api: ApiBench) -> Run:
    return as_root(api)


def memory(api: ApiBench) -> Memory:
    assert api.latest is not None
    return api.latest.memory


def a_file(folder: Path, name: str = "ml-cluster", **groups: dict[str, Any]) -> str:
    entries = [
        {"InstanceGroupName": group, "InstanceType": "ml.c5.large", "ExecutionRole": ROLE, **fields}
        for group, fields in groups.items()
    ]
    document = {"ClusterName": name, "NodeProvisioningMode": "Continuous", "InstanceGroups": entries}
    path = folder / "cluster.json"
    path.write_text(json.dumps(document))
    return str(path)


CONTROLLER = {"InstanceCount": 1, "SlurmConfig": {"NodeType": "Controller"}}


def test_groups_are_listed_with_their_counts(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3).slot("workers-3", step=SlotStep.SETUP))
    lines = run(group, "list").output.splitlines()
    assert lines[0] == "ml-cluster: InService"
    assert lines[3].split() == ["workers", "Compute", "InService", "2", "3", "0", "ml.c5.large", "dev"]


def test_without_a_cluster_the_commands_say_how_to_make_one(api: ApiBench, run: Run) -> None:
    api.show_groups(nothing())
    assert "steward cluster apply FILE" in run(group, "list").output
    found = run(group, "scale", "workers", "3")
    assert (found.exit_code, "steward cluster apply FILE" in found.output) == (1, True)


def test_a_group_is_scaled_and_keeps_what_was_not_said(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3).change_group("workers", goal=Goal(target=3, minimum=1)))
    assert run(group, "scale", "workers", "5", "--no-wait").exit_code == 0
    assert memory(api).groups["workers"].goal == Goal(target=5, minimum=1)
    assert run(group, "scale", "workers", "6", "--min", "4", "--no-wait").exit_code == 0
    assert memory(api).groups["workers"].goal == Goal(target=6, minimum=4)


def test_a_refused_scaling_is_one_line_and_status_1(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3))
    found = run(group, "scale", "workers", "2", "--min", "3")
    assert found.exit_code == 1
    assert found.output.startswith("Error: ValidationException: Instance group workers")
    assert "it has controller, workers" in run(group, "scale", "other", "2").output


def test_a_wait_ends_when_the_group_has_its_size(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3))
    found = run(group, "scale", "workers", "3")
    assert (found.exit_code, "workers  Compute  InService  3  3" in found.output) == (0, True)


def test_a_group_is_deleted_only_after_a_yes(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3))
    assert run(group, "delete", "workers", "--no-wait", answer="n\n").exit_code == 1
    assert memory(api).groups["workers"].status is GroupStatus.IN_SERVICE
    assert run(group, "delete", "workers", "--no-wait", answer="y\n").exit_code == 0
    assert memory(api).groups["workers"].status is GroupStatus.DELETING


def test_nodes_are_listed_with_what_is_wrong_with_them(api: ApiBench, run: Run) -> None:
    waiting = {"step": SlotStep.WAITING, "instance": None, "hitch": Hitch.CAPACITY, "trouble": "capacity: none left"}
    api.show_groups(an_api_cluster(2).slot("workers-2", **waiting))
    lines = run(node, "list").output.splitlines()
    assert "capacity: none left" in next(line for line in lines if line.startswith("workers-2"))


@pytest.mark.parametrize("word", ["workers-2", "workers-[2-2]", f"{ID}-2"])
def test_a_node_is_named_in_any_way(api: ApiBench, run: Run, word: str) -> None:
    api.show_groups(an_api_cluster(3))
    assert run(node, "delete", word, "--yes", "--no-wait").exit_code == 0
    assert memory(api).slots[n("workers-2")].purpose is Purpose.LEAVE


def test_a_node_that_is_not_there_stops_the_whole_command(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3))
    found = run(node, "replace", "workers-1", "nobody", "--yes")
    assert (found.exit_code, "nobody" in found.output) == (1, True)
    assert not memory(api).cases


def test_what_was_refused_of_a_batch_is_told_and_is_status_1(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3))
    found = run(node, "delete", "workers-1", "controller-1", "--yes", "--no-wait")
    assert found.exit_code == 1
    assert "Accepted for 1 of 2 nodes." in found.output
    assert "NodeIdInUse" in found.output


def test_reboot_and_replace_repair_the_node(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster(3))
    assert run(node, "reboot", "workers-1", "--yes", "--no-wait").exit_code == 0
    assert run(node, "replace", "workers-2", "--yes", "--no-wait").exit_code == 0
    assert {case.node for case in memory(api).cases.values()} == {"workers-1", "workers-2"}


def test_a_file_makes_a_cluster_after_a_look_at_what_it_will_be(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show_groups(nothing())
    file = a_file(tmp_path, controller=CONTROLLER, workers={"InstanceCount": 4, "MinInstanceCount": 3})
    found = run(cluster, "apply", file, "--no-wait", answer="n\n")
    assert "+ group workers: 4 x ml.c5.large (Compute, min 3)" in found.output
    assert (found.exit_code, memory(api).cluster) == (1, None)
    assert run(cluster, "apply", file, "--no-wait", answer="y\n").exit_code == 0
    assert memory(api).groups["workers"].goal == Goal(target=4, minimum=3)
    assert memory(api).groups["controller"].role is Role.CONTROLLER


def test_the_same_file_again_changes_nothing(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show_groups(nothing())
    partition = {"NodeType": "Compute", "PartitionNames": ["dev"]}
    cycle = {"SourceS3Uri": "file:///opt/scripts", "OnCreate": "on_create.sh"}
    workers = {"InstanceCount": 4, "MinInstanceCount": 3, "SlurmConfig": partition, "LifeCycleConfig": cycle}
    file = a_file(tmp_path, controller=CONTROLLER, workers=workers)
    assert run(cluster, "apply", file, "--no-wait", "--yes").exit_code == 0
    found = run(cluster, "apply", file)
    assert (found.exit_code, found.output) == (0, "No change.\n")


def test_only_what_differs_is_shown_and_sent(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show_groups(an_api_cluster(3))
    file = a_file(tmp_path, controller=CONTROLLER, workers={"InstanceCount": 5})
    found = run(cluster, "apply", file, "--no-wait", "--yes")
    assert found.output == "~ group workers\n    InstanceCount: 3 -> 5\n"
    assert memory(api).groups["workers"].goal.target == 5


def test_a_group_that_the_file_lacks_stays_unless_pruned(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show_groups(an_api_cluster(3))
    file = a_file(tmp_path, controller=CONTROLLER)
    assert "= group workers (3 instances): not in the file, stays" in run(cluster, "apply", file).output
    assert memory(api).groups["workers"].status is GroupStatus.IN_SERVICE
    assert "- group workers" in run(cluster, "apply", file, "--prune", "--yes", "--no-wait").output
    assert memory(api).groups["workers"].status is GroupStatus.DELETING


def test_a_dry_run_changes_nothing(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show_groups(an_api_cluster(3))
    before = memory(api)
    assert run(cluster, "apply", a_file(tmp_path, workers={"InstanceCount": 9}), "--dry-run").exit_code == 0
    assert memory(api) == before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ClusterName": "x", "InstanceGroups": [{}]}'])
def test_a_file_that_is_no_cluster_is_refused(api: ApiBench, run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    found = run(cluster, "apply", str(path))
    assert (found.exit_code, found.output.startswith("Error: ")) == (1, True)


@pytest.mark.parametrize("count", [True, "3", 3.0, None])
def test_a_count_that_is_no_whole_number_is_refused_with_its_group(
    api: ApiBench, run: Run, tmp_path: Path, count: object
) -> None:
    api.show_groups(an_api_cluster())
    found = run(cluster, "apply", a_file(tmp_path, workers={"InstanceCount": count}), "--yes")
    assert (found.exit_code, "group 1 needs InstanceGroupName, a text, and InstanceCount" in found.output) == (1, True)


def test_a_file_about_another_cluster_is_refused(api: ApiBench, run: Run, tmp_path: Path) -> None:
    api.show_groups(an_api_cluster())
    found = run(cluster, "apply", a_file(tmp_path, name="other", workers={"InstanceCount": 1}), "--yes")
    assert (found.exit_code, "looks after ml-cluster" in found.output) == (1, True)


def test_the_cluster_is_deleted_only_after_a_yes(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster())
    assert run(cluster, "delete", "--no-wait", answer="\n").exit_code == 1
    assert run(cluster, "delete", "--no-wait", answer="y\n").exit_code == 0
    assert {one.status for one in memory(api).groups.values()} == {GroupStatus.DELETING}


def test_answers_are_json_for_programs(api: ApiBench, run: Run) -> None:
    api.show_groups(an_api_cluster())
    assert json.loads(run(group, "list", "--json").output)[1]["InstanceGroupName"] == "workers"
    assert len(json.loads(run(node, "list", "--json").output)) == 4
    assert "ClusterArn" in json.loads(run(group, "scale", "workers", "4", "--json").output)


def test_the_status_has_a_table_of_groups(api: ApiBench) -> None:
    api.show_groups(an_api_cluster(3).change_group("workers", message="rolled back: no capacity"))
    lines = CliRunner().invoke(main, ["--url", api.url, "status"]).output.splitlines()
    assert lines[-1].split()[:6] == ["workers", "Compute", "InService", "3", "3", "0"]
    assert lines[-1].endswith("rolled back: no capacity")


@pytest.mark.parametrize("words", [["workers"], ["group", "workers"]])
def test_a_group_is_explained_with_and_without_the_word(api: ApiBench, words: list[str]) -> None:
    api.show_groups(an_api_cluster(3))
    found = CliRunner().invoke(main, ["--url", api.url, "explain", *words])
    assert "workers (Compute): InService" in found.output


@pytest.mark.parametrize("words", [["group", "x", "y"], ["nodes", "n1"], ["job", "n1"]])
def test_what_cannot_be_explained_is_told(api: ApiBench, words: list[str]) -> None:
    api.show_groups(an_api_cluster(3))
    found = CliRunner().invoke(main, ["--url", api.url, "explain", *words])
    assert (found.exit_code, "Usage:" in found.output) == (2, True)
