"""`steward cluster`, `steward group` and `steward node` wait for the work of a head whose cycle runs."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from steward.cli.cluster import cluster
from steward.cli.context import Context
from steward.cli.group import group
from steward.cli.node import node
from steward.client import Client
from tests.builders.api_cluster import ROLE
from tests.fakes.live_head import LiveHead, a_live_head

Run = Callable[..., Result]


@pytest.fixture
def head() -> Iterator[LiveHead]:
    with a_live_head() as live:
        yield live


@pytest.fixture
def run(head: LiveHead) -> Run:
    class LiveContext(Context):
        def client(self) -> Client:
            return head.aws.client()

    def invoke(command: click.Group, *words: str) -> Result:
        return CliRunner().invoke(command, words, obj=LiveContext(url="", as_json=False, munge_socket=""))

    return invoke


def a_group(name: str, count: int, **slurm: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "InstanceCount": count,
        "InstanceType": "ml.c5.large",
        "ExecutionRole": ROLE,
        "SlurmConfig": slurm,
    }


def test_each_command_returns_when_its_work_is_done(head: LiveHead, run: Run, tmp_path: Path) -> None:
    workers = a_group("workers", 3, NodeType="Compute", PartitionNames=["workers"])
    document = {
        "ClusterName": "ml-cluster",
        "NodeProvisioningMode": "Continuous",
        "InstanceGroups": [a_group("controller", 1, NodeType="Controller"), workers],
    }
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(document))
    made = run(cluster, "apply", str(file), "--yes")
    assert (made.exit_code, current(run)) == (0, {"controller": 1, "workers": 3}), made.output
    assert run(cluster, "apply", str(file)).output == "No change.\n"

    assert run(group, "scale", "workers", "2").exit_code == 0
    assert current(run)["workers"] == 2
    chosen = next(one for one in nodes(run) if one["InstanceGroupName"] == "workers")
    replaced = run(node, "replace", chosen["PrivateDnsHostname"], "--yes")
    assert replaced.exit_code == 0, replaced.output
    now = {one["NodeLogicalId"]: one["InstanceId"] for one in nodes(run)}
    assert now[chosen["NodeLogicalId"]] != chosen["InstanceId"]

    assert run(node, "delete", chosen["NodeLogicalId"], "--yes").exit_code == 0
    assert current(run)["workers"] == 1
    assert run(group, "delete", "workers", "--yes").exit_code == 0
    assert set(current(run)) == {"controller"}
    ended = run(cluster, "delete", "--yes")
    assert ended.output.endswith("Cluster ml-cluster is gone.\n")


def current(run: Run) -> dict[str, int]:
    found = json.loads(run(group, "list", "--json").output)
    return {one["InstanceGroupName"]: one["CurrentCount"] for one in found}


def nodes(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(node, "list", "--json").output)
    return found
