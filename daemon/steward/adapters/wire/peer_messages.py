"""What head and agents tell each other of a look at another node's slurmd, as frames and back. What comes in is hostile
until here."""

from dataclasses import dataclass

from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.messages import MAX_NAME, text, word
from steward.model.ids import NodeName
from steward.model.observed import Witness
from steward.model.text import shown

_MAX_ADDRESS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class LookOrder:
    """Which node, and where Slurm says that its slurmd listens."""

    node: NodeName
    address: str
    port: int


def look_frame(order: LookOrder) -> Frame:
    return {"t": "look", "node": order.node, "address": order.address, "port": order.port}


def look_of(frame: Frame) -> LookOrder:
    """Raises Malformed."""
    port = frame.get("port")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        raise Malformed(f"port={shown(port)} is no port")
    return LookOrder(node=_node(frame), address=text(frame, "address", _MAX_ADDRESS), port=port)


def looked_frame(node: NodeName, result: Witness) -> Frame:
    return {"t": "looked", "node": node, "result": result.value}


def looked_of(frame: Frame) -> tuple[NodeName, Witness]:
    """Raises Malformed."""
    return _node(frame), word(Witness, frame, "result")


def _node(frame: Frame) -> NodeName:
    return NodeName(text(frame, "node", MAX_NAME))
