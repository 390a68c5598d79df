"""What a person may do about a node: give it back, or ask for a repair that can be carried out there."""

from steward.model.health import Advice
from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.facts.loans import can_be_replaced
from steward.policy.slurm_reasons import COMMANDS


def return_command(node: NodeName) -> str:
    """Return the command by which a person gives a node back to Slurm."""
    return f"`scontrol update nodename={node} state=resume`"


def commands_for_held_node(node: NodeName, draft: Draft) -> str:
    """Return the commands for a held node: give it back, or the first repair that can be carried out there."""
    able = [word for word, rung in COMMANDS.items() if _can_be_done(node, rung, draft)]
    return ", or reason=".join((return_command(node), *able[:1]))


def _can_be_done(node: NodeName, rung: Advice, draft: Draft) -> bool:
    return node in draft.slots.repairable and not why_not_repairable(node, rung, draft)


def why_not_repairable(node: NodeName, rung: Advice, draft: Draft) -> str:
    """Return why an admin's command cannot be carried out on a node that has a slot; empty if it can be."""
    slot = draft.slots.repairable.get(node)
    if slot is None:
        return ""
    if rung is Advice.REBOOT and not slot.reboots:
        return f"its provider has no command that reboots a machine: reboot {node} by hand, then give it back"
    if rung is Advice.REPLACE and not can_be_replaced(node, draft):
        return f"its machine is fixed and no spare is named for it: repair {node} by hand, then give it back"
    return ""
