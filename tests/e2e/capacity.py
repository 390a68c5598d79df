"""Words for tests of capacity: groups made and changed by real AWS clients, looked at through Slurm as users do."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from steward_bed.bed import BedError
from steward_bed.faults import FaultKind
from tests.e2e.groups_bed import HEAD_S, Access
from tests.e2e.story import Story

CLUSTER = "ml"
GROUP = "workers"
"""The group whose nodes slurm.conf names; those of the other one register themselves."""
EXTRA = "extra"
PARTITION = "train"
_TYPE = "ml.c5.large"
_ROLE = "arn:aws:iam::000000000000:role/any"


@dataclass
class Capacity(Story):
    """A story on a bed whose nodes come with groups. No `__slots__`: the client is made once."""

    access: Access = field(default_factory=lambda: Access("", ""))

    @cached_property
    def api(self) -> Any:
        return self.access.client()

    def aws(self, *words: str) -> Any:
        """Raises BedError with what it said when it fails."""
        return self.access.aws(self.dir, *words)

    def cluster_file(self, **workers: Any) -> Path:
        """The JSON file of a cluster of a controller and one group."""
        path = self.dir / "cluster.json"
        path.write_text(json.dumps(cluster(wish(**workers))))
        return path

    def groups_file(self, *groups: Mapping[str, Any]) -> Path:
        """A JSON file for `--instance-groups`."""
        path = self.dir / "groups.json"
        path.write_text(json.dumps(groups))
        return path

    def create(self, *groups: Mapping[str, Any]) -> None:
        self.api.create_cluster(**cluster(*groups))

    def update(self, *groups: Mapping[str, Any], **more: Any) -> None:
        self.api.update_cluster(ClusterName=CLUSTER, InstanceGroups=list(groups), **more)

    def cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = self._read("describe_cluster")
        return found

    def group(self, name: str = GROUP) -> dict[str, Any]:
        return next((each for each in self.cluster()["InstanceGroups"] if each["InstanceGroupName"] == name), {})

    def members(self, name: str = GROUP) -> list[dict[str, Any]]:
        """Every node of a group, those without an instance, too."""
        answer = self._read("list_cluster_nodes", IncludeNodeLogicalIds=True, MaxResults=100)
        return [each for each in answer["ClusterNodeSummaries"] if each["InstanceGroupName"] == name]

    def member(self, node: str) -> dict[str, Any]:
        """The node as the API lists it; empty when it does not."""
        return next((each for each in self.members() if each["PrivateDnsHostname"] == node), {})

    def instances(self, name: str = GROUP) -> dict[str, str]:
        """Node -> its instance."""
        return {each["PrivateDnsHostname"]: each["InstanceId"] for each in self.members(name) if each["InstanceId"]}

    def wait_group(
        self, status: str = "InService", current: int | None = None, *, name: str = GROUP, deadline_s: float = 60.0
    ) -> dict[str, Any]:
        def there() -> bool:
            found = self.group(name)
            return found["Status"] == status and current in (None, found["CurrentCount"])

        many = "" if current is None else f" with {current} nodes"
        self.wait(f"group {name} is {status}{many}", there, deadline_s)
        return self.group(name)

    def wait_current(self, count: int, *, deadline_s: float = 60.0) -> None:
        self.wait(f"{count} nodes are there", lambda: self.group()["CurrentCount"] == count, deadline_s)

    def wait_members(self, count: int, *, deadline_s: float = 60.0) -> None:
        """Those that leave are gone, too."""
        self.wait(f"the group has {count} nodes", lambda: len(self.members()) == count, deadline_s)

    def partition_state(self, partition: str = PARTITION) -> str:
        """sinfo's word: up, down, drain, inact; empty when there is no such partition."""
        words = self.bed.run(
            ["sinfo", "--noheader", f"--partition={partition}", "--format=%a"], check=False
        ).text.split()
        return words[0] if words else ""

    def idle_nodes(self, partition: str = PARTITION) -> set[str]:
        argv = ["sinfo", "--noheader", "--Node", "--states=idle", f"--partition={partition}", "--format=%N"]
        return set(self.bed.run(argv).text.split())

    def wait_idle(self, count: int) -> None:
        self.wait(f"{count} nodes are idle in Slurm", lambda: len(self.idle_nodes()) == count)

    def all_nodes(self) -> set[str]:
        """Every node that Slurm knows."""
        return set(re.findall(r"NodeName=(\S+)", self.bed.run(["scontrol", "-o", "show", "nodes"], check=False).text))

    def steward(self, *words: str) -> str:
        return self.bed.run(["steward", *words], check=False).text

    def limit(self, machines: int) -> None:
        """From now on the provider has only so many machines."""
        self.hurt(FaultKind.LIMIT_LAUNCH, text=str(machines))

    def crash_head(self) -> None:
        """kill -9, and a new one, which answers."""
        self.hurt(FaultKind.KILL_HEAD)
        self.hurt(FaultKind.START_HEAD)
        self.wait("the head answers", lambda: self.get("/v1/status"), HEAD_S)

    def restart_slurmctld(self) -> None:
        """By hand, as an admin does; returns when it answers again."""
        self.hurt(FaultKind.RESTART_SLURMCTLD)
        self.wait("slurmctld answers", lambda: self.bed.run(["scontrol", "ping"], check=False).text.count("UP"), 30.0)

    def explain(self, what: str) -> str:
        """Of a job, a group of the API or a node."""
        if what in (GROUP, EXTRA):
            return "\n".join(self.get(f"/v1/explain/group/{what}")["lines"])
        return Story.explain(self, what)

    def group_events(self, kind: str, *, since: float) -> list[str]:
        return [event["text"] for event in self.events(kind, since=since)]

    def _read(self, operation: str, **words: Any) -> Any:
        """A head that is being started again says so, or nothing: a `wait` looks once more."""
        try:
            return getattr(self.api, operation)(ClusterName=CLUSTER, **words)
        except BotoCoreError as error:
            raise BedError(f"{operation}: {error}") from error
        except ClientError as error:
            if error.response["Error"]["Code"] != "ServiceUnavailable":
                raise
            raise BedError(f"{operation}: {error}") from error

    def __post_init__(self) -> None:
        self.began = time.time()


def wish(count: int = 4, minimum: int | None = None, *, name: str = GROUP, **more: Any) -> dict[str, Any]:
    """One compute group, as InstanceGroups takes it."""
    least = {} if minimum is None else {"MinInstanceCount": minimum}
    return {
        "InstanceGroupName": name,
        "InstanceType": _TYPE,
        "InstanceCount": count,
        "ExecutionRole": _ROLE,
        "SlurmConfig": {"NodeType": "Compute", "PartitionNames": [PARTITION]},
        **least,
        **more,
    }


def cluster(*groups: Mapping[str, Any]) -> dict[str, Any]:
    """A whole CreateCluster: a controller and these groups."""
    controller = {
        "InstanceGroupName": "controller",
        "InstanceType": _TYPE,
        "InstanceCount": 1,
        "ExecutionRole": _ROLE,
        "SlurmConfig": {"NodeType": "Controller"},
    }
    return {
        "ClusterName": CLUSTER,
        "InstanceGroups": [controller, *groups],
        "Orchestrator": {"Slurm": {}},
        "NodeProvisioningMode": "Continuous",
    }
