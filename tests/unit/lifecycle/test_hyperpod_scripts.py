"""What AWS' own base configuration reads on a worker: a stand-in for each of its reads, run as the node's script."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.node.setup_dir import SetupJob
from steward.lifecycle.run import write_config
from steward.model.setup import SetupState
from tests.fakes.setups import NodeDisk

READS = r"""#!/bin/bash
exec python3 - provisioning_parameters.json "$SAGEMAKER_RESOURCE_CONFIG_PATH" 10.0.0.7 <<'PYTHON'
import json, sys

parameters, config = (json.load(open(path)) for path in sys.argv[1:3])
own = sys.argv[3]
by_name = {group["Name"]: group for group in config["InstanceGroups"]}
controllers = [each["CustomerIpAddress"] for each in by_name[parameters["controller_group"]]["Instances"]]
group, instance = next(
    (group, each) for group in by_name.values() for each in group["Instances"] if each["CustomerIpAddress"] == own
)
roles = {parameters["controller_group"]: "controller", parameters.get("login_group"): "login"}
read = {
    "conf_server": ",".join(controllers),
    "primary": config["SlurmConfig"]["PrimaryControllerIp"],
    "agents": [each["AgentIpAddress"] for each in by_name[parameters["controller_group"]]["Instances"]],
    "role": roles.get(group["Name"], "compute"),
    "name": instance["InstanceName"],
    "cluster": config["ClusterConfig"]["ClusterName"],
}
json.dump(read, open("read.json", "w"))
PYTHON
"""
"""Group names are compared with provisioning_parameters.json beside the script, addresses with the node's own."""
PARAMETERS = json.dumps(
    {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": "controller",
        "worker_groups": [{"instance_group_name": "worker", "partition_name": "dev"}],
    }
)


def a_config(controller: str) -> dict[str, Any]:
    def a_group(name: str, role: str, node: str, address: str) -> dict[str, Any]:
        instance = {"InstanceName": node, "AgentIpAddress": address, "CustomerIpAddress": address, "InstanceId": "i-1"}
        return {"Name": name, "SlurmConfig": {"NodeType": role}, "Instances": [instance]}

    return {
        "ClusterConfig": {"ClusterArn": "arn:x", "ClusterName": "lab"},
        "InstanceGroups": [
            a_group("controller", "Controller", "head", controller),
            a_group("worker", "Compute", "n1", "10.0.0.7"),
        ],
        "ClusterType": "Slurm",
        "SlurmConfig": {"PrimaryControllerIp": controller, "SecondaryControllerIps": []},
    }


def read_on_a_worker(disk: NodeDisk, config: dict[str, Any]) -> Any:
    disk.script(READS)
    order = replace(disk.order(), resource_config=json.dumps(config), provisioning=PARAMETERS)
    report = disk.run(order)
    assert report.state is SetupState.SUCCEEDED, report
    return json.loads((disk.root / "scripts/read.json").read_text())


@pytest.mark.parametrize(("known", "address"), [("", "127.0.0.1"), ("10.0.0.1", "10.0.0.1")])
def test_a_worker_finds_its_controller_and_itself(tmp_path: Path, known: str, address: str) -> None:
    """Where the head does not know how others reach its machine, the worker's own way to the head is taken."""
    read = read_on_a_worker(NodeDisk(home=tmp_path), a_config(known))
    assert read == {
        "conf_server": address,
        "primary": address,
        "agents": [address],
        "role": "compute",
        "name": "n1",
        "cluster": "lab",
    }


def test_a_head_whose_name_does_not_resolve_is_given_by_its_name(tmp_path: Path) -> None:
    disk = NodeDisk(home=tmp_path)
    order = replace(disk.order(), resource_config=json.dumps(a_config("")), provisioning=PARAMETERS)
    write_config(SetupJob(order=order, here=replace(disk.here, head="head.invalid")), tmp_path)
    config = json.loads((disk.here.config_dir / "resource_config.json").read_text())
    assert config["InstanceGroups"][0]["Instances"][0]["CustomerIpAddress"] == "head.invalid"
