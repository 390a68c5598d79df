"""What groups of the API need of this Slurm: a file for their partitions, the lent ones, room for dynamic nodes."""

from collections.abc import Collection, Mapping

from steward.workflows.doctor import Line, bad, ok, warn

_TOPIC = "partitions"
_TREE_WIDTH = 65533


def judge_include(line: str, included: bool, why_not_writable: str) -> list[Line]:
    """`line` is what slurm.conf must say; `why_not_writable` is empty where the file can be replaced."""
    if why_not_writable:
        return [bad(_TOPIC, f"our file of partitions: {why_not_writable}", "or change capacity.slurm_include")]
    if not included:
        return [
            bad(_TOPIC, "slurm.conf does not include our file of partitions", f"add the line `{line}` to slurm.conf")
        ]
    return [ok(_TOPIC, f"slurm.conf has the line `{line}`, and the file can be replaced")]


def judge_lent(lent: Collection[str], known: Collection[str]) -> list[Line]:
    """The partitions of capacity.owned_partitions, and all that Slurm knows."""
    if missing := sorted(set(lent) - set(known)):
        remedy = "make it in slurm.conf or take it out of capacity.owned_partitions"
        return [bad(_TOPIC, f"Slurm has no partition {', '.join(missing)}, lent to Steward", remedy)]
    return [ok(_TOPIC, f"lent to Steward: {', '.join(sorted(lent))}")] if lent else []


def judge_dynamic(config: Mapping[str, str]) -> list[Line]:
    """For groups whose nodes register by themselves. `config` as `scontrol show config` prints it."""
    topic = "dynamic nodes"
    if config.get("MaxNodeCount", "") in ("", "0"):
        return [bad(topic, "MaxNodeCount is not set: no node can register by itself", "set MaxNodeCount in slurm.conf")]
    if config.get("SelectType") == "select/linear":
        return [bad(topic, "SelectType=select/linear takes no dynamic nodes", "set SelectType=select/cons_tres")]
    if config.get("TreeWidth", "") != str(_TREE_WIDTH):
        text = f"TreeWidth={config.get('TreeWidth', '?')}: a node may be told to pass messages on to a dynamic one"
        return [warn(topic, f"{text}, whose address it does not know", f"set TreeWidth={_TREE_WIDTH}")]
    return [ok(topic, f"MaxNodeCount={config['MaxNodeCount']}")]
