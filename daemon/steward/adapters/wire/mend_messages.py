"""Messages between head and agent on a light repair, as frames and back. Input is hostile until it passed here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steward.adapters.wire.codec import Codec
from steward.adapters.wire.frames import Frame, Malformed
from steward.model.bounds import is_token
from steward.model.health import Advice
from steward.model.mend import MendReport, fits
from steward.model.text import printable
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


_ORDER = Codec(MendOrder, "mend")
_REPORT = Codec(MendReport, "mended")


def mend_frame(order: "MendNode") -> Frame:
    """Raises Permanent for an order that no agent would take."""
    if not is_token(order.token) or not fits(order.rung, order.target):
        raise Permanent(f"{order.rung.value} of {printable(order.target, 80)!r} is not an order for an agent")
    return _ORDER.write(MendOrder(rung=order.rung, target=order.target, token=order.token))


def mend_of(frame: Frame) -> MendOrder:
    """Raises Malformed."""
    order = _ORDER.read(frame)
    if not is_token(order.token) or not fits(order.rung, order.target):
        raise Malformed(f"{order} is not an order for an agent")
    return order


def mended_frame(report: MendReport) -> Frame:
    return _REPORT.write(report)


def mended_of(frame: Frame) -> MendReport:
    """Raises Malformed."""
    return _REPORT.read(frame)
