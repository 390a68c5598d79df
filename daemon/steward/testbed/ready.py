"""When a bed is up, whatever it is made of."""

from collections.abc import Mapping
from typing import Any

import requests

from steward.model.ids import NodeName
from steward.testbed.bed import Bed, BedError
from steward.testbed.wait import wait_until_empty

_NODES_S = 90.0
_AGENTS_S = 90.0
_HTTP_S = 5.0
_AT_REST = ("fine", "suspect", "report-only", "unwatched")
"""Words of `steward nodes` after which the node stays as it is."""


def node_states(bed: Bed) -> Mapping[NodeName, str]:
    """Slurm's word for each node that has a machine, such as "idle", "mixed", "down*" or "drained". Raises Failed
    without an answer.

    `planned` is idle: what backfill had in mind for a node whose job is gone stands until its next pass, 30 s later.
    """
    which = ["--nodes", ",".join(_names(bed))] if bed.spec.silent else []
    lines = bed.run(["sinfo", "--noheader", "--Node", "--format=%N %T", *which], timeout_s=10).text.splitlines()
    return {NodeName(name): "idle" if state == "planned" else state for name, state in (line.split() for line in lines)}


def call_silent_nodes(bed: Bed) -> None:
    """The nodes that are only in slurm.conf become nodes, which are DOWN."""
    if bed.spec.silent:
        change = [f"nodename={bed.spec.silent_names}", "state=down", "reason=bed"]
        bed.run(["scontrol", "update", *change], timeout_s=_NODES_S)


def await_ready(bed: Bed) -> None:
    """Returns when Slurm calls every node idle (a spare of fixed machines: drained) and, with Steward, every agent is
    connected to the head."""
    await_nodes(bed)
    if bed.spec.steward:
        await_agents(bed)


def await_nodes(bed: Bed) -> None:
    """Returns when Slurm calls every node idle."""

    def not_idle() -> dict[NodeName, str]:
        states = node_states(bed)
        wanted = dict.fromkeys(_names(bed), "idle")
        if bed.spec.fixed and bed.spec.steward:
            wanted |= dict.fromkeys(bed.spec.spare_names, "drained")
        return {name: states.get(name, "unknown") for name in wanted if states.get(name) != wanted[name]}

    wait_until_empty("every node is idle in Slurm", not_idle, _NODES_S)


def await_agents(bed: Bed) -> None:
    """Returns when every agent is connected to the head."""

    def not_connected() -> list[NodeName]:
        nodes = {node["name"]: node["agent"] for node in ask_head(bed, "/v1/nodes")}
        return [name for name in _names(bed) if not (nodes.get(name) or {}).get("connected")]

    wait_until_empty("every agent is connected to the head", not_connected, _AGENTS_S)


def open_cases(bed: Bed) -> list[str]:
    """ "n3 at drain" for each repair under way."""
    return [f"{case['node']} at {case['step']}" for case in ask_head(bed, "/v1/cases") if case["open"]]


def accused(bed: Bed) -> list[str]:
    """ "n3 is degraded" for each node that the head sees out of service, or will take out."""
    said = {node["name"]: node["verdict"] for node in ask_head(bed, "/v1/nodes")}
    silent = set() if not bed.spec.silent else said.keys() - set(_names(bed))
    return [f"{name} is {word}" for name, word in said.items() if word not in _AT_REST and name not in silent]


def ask_head(bed: Bed, path: str) -> Any:
    """A page of stewardd's HTTP API. Raises BedError when there is no good answer."""
    try:
        answer = requests.get(bed.env["STEWARD_URL"] + path, timeout=_HTTP_S)
        answer.raise_for_status()
        return answer.json()
    except requests.RequestException as error:
        raise BedError(f"stewardd does not answer {path}: {error}") from error


def _names(bed: Bed) -> tuple[NodeName, ...]:
    """Those that are there from the start."""
    return () if bed.spec.groups else (*bed.spec.node_names, *bed.spec.spare_names)
