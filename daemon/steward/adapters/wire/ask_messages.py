"""A waiting shim as a frame and back, with the known lines of its job's log. What comes in is hostile."""

from steward.adapters.wire.codec import Codec
from steward.adapters.wire.frames import Frame
from steward.model.ask import Ask
from steward.model.ids import NodeName

_ASK = Codec(Ask, "ask")


def ask_frame(ask: Ask) -> Frame:
    return _ASK.write(ask)


def ask_of(frame: Frame, node: NodeName) -> Ask:
    """The ask in a frame from the agent of `node`. Raises Malformed."""
    return _ASK.read(frame, node=node)
