"""What `steward doctor` says of the head's own surroundings: shim, agents, clocks."""

from collections.abc import Collection, Mapping
from pathlib import Path

from steward.model.ids import NodeName
from steward.model.node_names import fold
from steward.model.observed import AgentDetail, AgentView
from steward.model.text import printable
from steward.workflows.doctor import Line, bad, ok, warn

_SKEW_S = 1.0
_LONGEST = 300
"""Characters of a list of nodes."""


def judge_shim(path: Path, text: str | None, *, is_new: bool = False) -> list[Line]:
    """`text`: plugstack.conf, None where it cannot be read; `is_new`: the install has not come to the plugin yet."""
    remedy = f"add `optional steward.so socket=/run/steward/agent.sock` to {path}, on every node"
    if is_new and "steward" not in (text or ""):
        early = f"{path} does not name steward.so yet, which is expected before step 4 of the install"
        return [warn("shim", early, f"{remedy} (docs/operations.md, step 4)")]
    if text is None:
        return [bad("shim", f"{path} cannot be read", remedy)]
    active = [line.split("#")[0] for line in text.splitlines()]
    ours = [line.split() for line in active if "steward" in line]
    if not ours:
        included = any(line.strip().startswith("include") for line in active)
        if included:
            return [warn("shim", f"{path} names no steward.so itself, but includes other files", remedy)]
        return [bad("shim", f"{path} does not name steward.so: --auto-resume is not known to Slurm", remedy)]
    words = ours[0]
    plugin = Path(words[1]) if len(words) > 1 else Path()
    if plugin.is_absolute() and not plugin.exists():
        return [
            bad(
                "shim",
                f"{path} names {plugin}, which is not there",
                "put the shim there: `make -C spank`, then docs/operations.md, step 4",
            )
        ]
    if words[0] == "required":
        return [warn("shim", f"{path}: the shim is `required`", "make it `optional`: it must never hold up a job")]
    return [ok("shim", f"{path}: {' '.join(words)}")]


def judge_agents(
    nodes: Collection[NodeName],
    views: Mapping[NodeName, AgentView],
    details: Mapping[NodeName, AgentDetail],
    version: str,
    *,
    is_new: bool,
) -> list[Line]:
    """`nodes`: those of Slurm; `version`: the head's; `is_new`: no agent has ever come, as right after an install."""
    connected = {name for name, view in views.items() if view.connected}
    missing = sorted(set(nodes) - connected)
    strangers = sorted(connected - set(nodes))
    others = sorted(name for name in connected if name in details and details[name].version != version)
    skewed = sorted(name for name in connected if name in details and abs(details[name].skew_s or 0.0) > _SKEW_S)
    return [
        _missing(missing, len(nodes), has_met=not is_new),
        *([_strangers(strangers)] if strangers else []),
        _versions(others, version),
        _clocks(skewed),
    ]


def judge_addresses(moved: Collection[NodeName]) -> list[Line]:
    """`moved`: nodes whose agents speak from an address that neither Slurm nor the provider knows for them."""
    if not moved:
        return [ok("addresses", "agents connect from the known addresses of their nodes, or those are not known")]
    unknown = "agents connect from addresses that neither Slurm nor the provider knows for their nodes"
    text = f"{unknown}: {_names(sorted(moved))}"
    remedy = "a second network or NAT: nothing to do; else look at the nodes, and set head.agent_addresses to strict"
    return [warn("addresses", text, remedy)]


def _missing(missing: list[NodeName], nodes: int, *, has_met: bool) -> Line:
    if not missing:
        return ok("agents", f"all {nodes} agents are connected")
    remedy = "start steward-agent there; `systemctl status steward-agent` on the node says what is wrong"
    if len(missing) == nodes and not has_met:
        text = f"no agent has come yet from any of {nodes} nodes, which is expected before step 3 of the install"
        return warn("agents", text, f"{remedy} (docs/operations.md, step 3)")
    text = f"{len(missing)} of {nodes} nodes have no agent: {_names(missing)}"
    return bad("agents", text, remedy) if len(missing) == nodes else warn("agents", text, remedy)


def _strangers(strangers: list[NodeName]) -> Line:
    return warn(
        "agents",
        f"agents of nodes that Slurm does not know: {_names(strangers)}",
        "set agent.node_name to Slurm's NodeName there",
    )


def _versions(others: list[NodeName], version: str) -> Line:
    if not others:
        return ok("versions", f"head and agents are {version}")
    return warn("versions", f"the head is {version}, other agents: {_names(others)}", "install the same release there")


def _clocks(skewed: list[NodeName]) -> Line:
    if not skewed:
        return ok("clocks", f"all agents' clocks are within {_SKEW_S:g} s of the head's")
    return warn("clocks", f"clocks off by more than {_SKEW_S:g} s: {_names(skewed)}", "run an NTP client there")


def _names(names: list[NodeName]) -> str:
    return printable(fold(names), _LONGEST)
