"""The second witness for an agent in doubt: asked while its ping is out, so that both words come together."""

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType

from steward.adapters.offload import Threads
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.model.observed import Witness, WitnessSeen
from steward.ports import Retryable, WitnessPort

log = logging.getLogger(__name__)

_AT_ONCE = 4
_LONGEST_S = 5.0


class SecondLook:
    """`learn` may be called from any thread, all else in the loop's."""

    def __init__(self, witness: WitnessPort, saw: Callable[[NodeName, WitnessSeen], None]) -> None:
        """`saw` is told what was found, as of every look at a node."""
        self._witness, self._saw = witness, saw
        self._nodes: Mapping[NodeName, Node] = MappingProxyType({})
        self._threads = Threads(_AT_ONCE)

    def learn(self, nodes: Mapping[NodeName, Node]) -> None:
        """Where slurmds listen, as Slurm said last."""
        self._nodes = nodes

    async def __call__(self, name: NodeName) -> Witness | None:
        """None where nothing was found out."""
        node = self._nodes.get(name)
        if node is None:
            return None
        address = node.address or node.name
        try:
            seen = await self._threads.call(
                lambda: self._witness.look(address, node.port), name=f"look at {name}", timeout_s=_LONGEST_S
            )
        except Retryable as error:
            log.info("not looked at: %s", error, extra={"node": name})
            return None
        self._saw(name, seen)
        return seen.result
