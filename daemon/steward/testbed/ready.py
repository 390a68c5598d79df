"""When a bed is up, whatever it is made of."""

from collections.abc import Mapping

from steward.model.ids import NodeName
from steward.testbed.bed import Bed
from steward.testbed.wait import wait_until_empty

_NODES_S = 30.0


def node_states(bed: Bed) -> Mapping[NodeName, str]:
    """Slurm's word for each node, such as "idle", "mixed", "down*" or "drained". Raises Failed without an answer."""
    lines = bed.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], timeout_s=10).text.splitlines()
    return {NodeName(name): state for name, state in (line.split() for line in lines)}


def await_nodes(bed: Bed, deadline_s: float = _NODES_S) -> None:
    """Returns when Slurm calls every node idle."""
    names = [*bed.spec.node_names, *bed.spec.spare_names]

    def not_idle() -> dict[NodeName, str]:
        states = node_states(bed)
        return {name: states.get(name, "unknown") for name in names if states.get(name) != "idle"}

    wait_until_empty("every node is idle in Slurm", not_idle, deadline_s)
