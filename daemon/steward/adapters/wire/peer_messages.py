"""Messages between head and agents on a look at another node's slurmd, as frames and back. Input is hostile until it
passed here."""

from dataclasses import dataclass
from typing import Annotated

from steward.adapters.wire.codec import Codec
from steward.adapters.wire.frames import Frame
from steward.model.bounds import MaxLen, Node, Range
from steward.model.ids import NodeName
from steward.model.witness import Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class LookOrder:
    """Which node, and where Slurm says that its slurmd listens."""

    node: Node
    address: Annotated[str, MaxLen(255)]
    port: Annotated[int, Range(1, 65535)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The result of an agent's look."""

    node: Node
    result: Witness


_ORDER = Codec(LookOrder, "look")
_LOOKED = Codec(_Looked, "looked")


def look_frame(order: LookOrder) -> Frame:
    return _ORDER.write(order)


def look_of(frame: Frame) -> LookOrder:
    """Raises Malformed."""
    return _ORDER.read(frame)


def looked_frame(node: NodeName, result: Witness) -> Frame:
    return _LOOKED.write(_Looked(node=node, result=result))


def looked_of(frame: Frame) -> tuple[NodeName, Witness]:
    """Raises Malformed."""
    told = _LOOKED.read(frame)
    return told.node, told.result
