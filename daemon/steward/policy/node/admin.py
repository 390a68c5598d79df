"""Commands that an admin gives through a node's reason (`order_words.py`)."""

from steward.model.node import Node
from steward.policy.node.order_words import COMMANDS, ordered
from steward.policy.node.verdict import Command


def command(node: Node) -> Command | None:
    """The order in the node's reason when it is out of service and the first token is exactly one."""
    text = ordered(node)
    if not text or node.reason is None:
        return None
    return Command(text=text, rung=COMMANDS[text], at=node.reason.at)
