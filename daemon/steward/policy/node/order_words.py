"""Commands that an admin writes into a node's reason: `Action:Replace` and `Action:Reboot`, to the letter."""

from functools import lru_cache

from steward.model.health import Advice
from steward.model.mark import first_token
from steward.model.node import Node

COMMANDS = {"Action:Replace": Advice.REPLACE, "Action:Reboot": Advice.REBOOT}


def ordered(node: Node) -> str:
    """The order in the node's reason when it is out of service and the first token is exactly one; else empty."""
    if node.reason is None or not (node.is_drain or node.is_down):
        return ""
    return _order(node.reason.text)


def near_miss(node: Node) -> str:
    """The command that the admin may have meant when the reason is nearly one, else empty."""
    if node.reason is None or ordered(node) or node.mark is not None:
        return ""
    if not (node.is_drain or node.is_down):
        return ""
    return _nearly(node.reason.text)


@lru_cache(maxsize=4096)
def _order(reason: str) -> str:
    text = first_token(reason)
    return text if text in COMMANDS else ""


@lru_cache(maxsize=4096)
def _nearly(reason: str) -> str:
    squeezed = "".join(reason.split()).lower().replace("_", "").replace("-", "")
    return next((text for text in COMMANDS if squeezed.startswith(text.lower()) or _similar(squeezed, text)), "")


def _similar(squeezed: str, text: str) -> bool:
    verb = text.split(":")[1].lower()
    return squeezed in (verb, f"action{verb}", f"action={verb}", f"actions:{verb}")
