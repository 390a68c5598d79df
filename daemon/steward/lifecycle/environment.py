"""What a script finds in its environment, and where its node stands in the cluster."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steward.adapters.node.setup_dir import SetupJob
from steward.model.group import Role
from steward.ports import Permanent

RESOURCE_CONFIG = "resource_config.json"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OURS_ALONE = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID")
"""Of the agent's service; a daemon that a script starts would take them for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Empty where resource_config.json does not name the node. `role` is the API's word."""

    cluster: str = ""
    group: str = ""
    role: str = ""


def place_of(job: SetupJob) -> Place:
    """Raises Permanent when resource_config.json is no JSON object."""
    config = parse(job.order.resource_config)
    cluster = str(_dict(config.get("ClusterConfig")).get("ClusterName", ""))
    for group in _dicts(config.get("InstanceGroups")):
        names = {each.get("InstanceName") for each in _dicts(group.get("Instances"))}
        if job.here.node in names:
            return Place(cluster=cluster, group=str(group.get("Name", "")), role=_role(group))
    return Place(cluster=cluster)


def controllers(config: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The instances of the controller's group, as resource_config.json has them."""
    groups = [group for group in _dicts(config.get("InstanceGroups")) if _role(group) == Role.CONTROLLER.value]
    return [instance for group in groups for instance in _dicts(group.get("Instances"))]


def _role(group: dict[str, Any]) -> str:
    return str(_dict(group.get("SlurmConfig")).get("NodeType", ""))


def environment(job: SetupJob, place: Place) -> Mapping[str, str]:
    """The runner's own environment, without what is only the agent's, and the promised names."""
    here = job.here
    kept = {name: value for name, value in os.environ.items() if name not in _OURS_ALONE}
    return {
        "PATH": _PATH,
        "HOME": "/root",
        **kept,
        "SAGEMAKER_RESOURCE_CONFIG_PATH": str(here.config_dir / RESOURCE_CONFIG),
        "STEWARD_NODE": here.node,
        "STEWARD_INSTANCE_ID": here.incarnation.instance,
        "STEWARD_CLUSTER": place.cluster,
        "STEWARD_GROUP": place.group,
        "STEWARD_ROLE": place.role,
        "STEWARD_FEATURES": ",".join(job.order.features),
        "STEWARD_HEAD": here.head,
        "STEWARD_SETUP_TOKEN": job.order.token,
    }


def parse(document: str) -> dict[str, Any]:
    """Raises Permanent."""
    try:
        value = json.loads(document or "{}")
    except (ValueError, RecursionError) as error:
        raise Permanent(f"the head sent a document that is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Permanent("the head sent a document that is no JSON object")
    return value


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> Iterable[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
