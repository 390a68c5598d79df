"""What head and agent tell each other of a light repair, as frames and back. What comes in is hostile until here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.messages import MAX_TEXT, number, text
from steward.adapters.wire.setup_messages import is_token
from steward.model.action import MendNode
from steward.model.health import Advice
from steward.model.mend import MendReport, fits
from steward.model.text import printable, shown
from steward.ports import Permanent


@dataclass(frozen=True, slots=True, kw_only=True)
class MendOrder:
    """As the agent has it: `target` has the form of a unit's name or of a GPU, which says nothing of whether it may."""

    rung: Advice
    target: str
    token: str


def mend_frame(order: MendNode) -> Frame:
    """Raises Permanent for an order that no agent would take."""
    if not is_token(order.token) or not fits(order.rung, order.target):
        raise Permanent(f"{order.rung.value} of {printable(order.target, 80)!r} is no order for an agent")
    return {"t": "mend", "rung": order.rung.value, "target": order.target, "token": order.token}


def mend_of(frame: Frame) -> MendOrder:
    """Raises Malformed."""
    try:
        rung = Advice(frame.get("rung"))
    except ValueError:
        raise Malformed(f"rung={shown(frame.get('rung'))} is no rung of the ladder") from None
    order = MendOrder(rung=rung, target=text(frame, "target"), token=text(frame, "token"))
    if not is_token(order.token) or not fits(order.rung, order.target):
        raise Malformed(f"{order} is no order for an agent")
    return order


def mended_frame(report: MendReport) -> Frame:
    return {"t": "mended", "token": report.token, "error": printable(report.error, MAX_TEXT), "at": report.at}


def mended_of(frame: Mapping[str, Any]) -> MendReport:
    """Raises Malformed."""
    token = text(frame, "token")
    if not is_token(token):
        raise Malformed(f"token={token!r} is no token")
    return MendReport(token=token, error=text(frame, "error", MAX_TEXT), at=number(frame, "at"))
