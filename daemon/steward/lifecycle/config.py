"""resource_config.json and provisioning_parameters.json where HyperPod's scripts look for them."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from steward.adapters.jsonfile import read_json
from steward.adapters.node.setup_dir import SetupJob
from steward.lifecycle.environment import RESOURCE_CONFIG, controllers, parse
from steward.ports import Permanent

PARAMETERS = "provisioning_parameters.json"


def write_config(job: SetupJob, scripts: Path) -> None:
    """The scripts' own parameters are kept and the head's are laid over them: it knows the groups best. A source
    without such a file gets one, since HyperPod's scripts read it from their own folder. Raises Permanent."""
    config = parse(job.order.resource_config)
    _name_controller(config, job.here.head)
    own = read_json(scripts / PARAMETERS)
    parameters = {**(own if isinstance(own, dict) else {}), **parse(job.order.provisioning)}
    folder = job.here.config_dir
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        _replace(folder / RESOURCE_CONFIG, config)
        _replace(folder / PARAMETERS, parameters)
        if not (scripts / PARAMETERS).exists():
            _replace(scripts / PARAMETERS, parameters)
    except OSError as error:
        raise Permanent(f"cannot write {folder}: {error}; correct agent.config_dir") from error


def _name_controller(config: dict[str, Any], head: str) -> None:
    """Where the head cannot say by which address a node reaches the controller: by the one of the head."""
    address = _address(head)
    slurm = config.setdefault("SlurmConfig", {})
    if isinstance(slurm, dict) and not slurm.get("PrimaryControllerIp"):
        slurm["PrimaryControllerIp"] = address
    for instance in controllers(config):
        for member in ("AgentIpAddress", "CustomerIpAddress"):
            instance[member] = instance.get(member) or address


def _address(host: str) -> str:
    """IPv4 where the host has one, as HyperPod's scripts expect it."""
    for family in (socket.AF_INET, socket.AF_UNSPEC):
        try:
            return str(socket.getaddrinfo(host, None, family)[0][4][0])
        except OSError:
            continue
    return host


def _replace(path: Path, value: dict[str, Any]) -> None:
    """Never half a file: others read it whenever they like."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.chmod(0o644)
    new.replace(path)
