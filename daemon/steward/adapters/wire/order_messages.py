"""Orders of the head that an agent carries out at once, and what came of them: a light repair, a look at another node's
slurmd. Frames there and back; input is hostile until it passed here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from steward.adapters.wire.codec import Codec
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.bounds import MaxLen, Node, Range, is_token
from steward.model.health import Advice
from steward.model.ids import NodeName
from steward.model.mend import MendReport, fits
from steward.model.text import printable
from steward.model.witness import Witness
from steward.ports import Permanent

if TYPE_CHECKING:
    from steward.model.action import MendNode


@dataclass(frozen=True, slots=True, kw_only=True)
class MendOrder:
    """An order for a light repair, as the agent reads it. `target` has the form of a unit's name or of a GPU; whether
    the agent may touch it is not checked here."""

    rung: Advice
    target: str
    token: str


_MEND = Codec(MendOrder, "mend")
_MENDED = Codec(MendReport, "mended")


def mend_frame(order: "MendNode") -> Frame:
    """Raises Permanent for an order that no agent would take."""
    if not is_token(order.token) or not fits(order.rung, order.target):
        raise Permanent(f"{order.rung.value} of {printable(order.target, 80)!r} is not an order for an agent")
    return _MEND.write(MendOrder(rung=order.rung, target=order.target, token=order.token))


def mend_of(frame: Frame) -> MendOrder:
    """Raises Malformed."""
    order = _MEND.read(frame)
    if not is_token(order.token) or not fits(order.rung, order.target):
        raise Malformed(f"{order} is not an order for an agent")
    return order


def mended_frame(report: MendReport) -> Frame:
    return _MENDED.write(report)


def mended_of(frame: Frame) -> MendReport:
    """Raises Malformed."""
    return _MENDED.read(frame)


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


_LOOK = Codec(LookOrder, "look")
_LOOKED = Codec(_Looked, "looked")


def look_frame(order: LookOrder) -> Frame:
    return _LOOK.write(order)


def look_of(frame: Frame) -> LookOrder:
    """Raises Malformed."""
    return _LOOK.read(frame)


def looked_frame(node: NodeName, result: Witness) -> Frame:
    return _LOOKED.write(_Looked(node=node, result=result))


def looked_of(frame: Frame) -> tuple[NodeName, Witness]:
    """Raises Malformed."""
    told = _LOOKED.read(frame)
    return told.node, told.result
