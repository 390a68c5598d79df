"""What a person may do about a node, and which nodes only a person can give back."""

from steward.model.health import Advice
from steward.model.ids import NodeName
from steward.model.mark import SPARE
from steward.model.node import Node
from steward.policy.draft import Draft
from steward.policy.facts.forgotten import is_return_forgotten, returned_by
from steward.policy.facts.loans import can_be_replaced
from steward.policy.facts.serving import belongs_to_slot
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


REBOOTS = frozenset({"REBOOT_REQUESTED", "REBOOT_ISSUED"})
"""A person's `scontrol reboot`, after which Slurm itself gives the node back."""


def is_orphan(node: Node, draft: Draft) -> bool:
    """Return whether the node is out of service with our mark, and no case is open that would give it back."""
    return has_stray_mark(node, draft) and is_return_forgotten(node, draft) is False


def has_stray_mark(node: Node, draft: Draft) -> bool:
    """Return whether the node is out of service with our mark, and nothing that goes on has put the mark there."""
    return draft.cases.open_of(node.name) is None and is_out_by_case(node, draft)


def is_out_by_case(node: Node, draft: Draft) -> bool:
    """Return whether the node is out of service with the mark of a repair, of any time."""
    is_out = node.mark is not None and (node.is_drain or node.is_down)
    is_meant = (node.name in draft.want.spares and node.mark == SPARE) or belongs_to_slot(node, draft)
    return is_out and not is_meant and not REBOOTS & node.flags


def origin_of_mark(node: Node, draft: Draft) -> str:
    """Return in words how an orphan came by our mark."""
    if returned_by(node, draft) is None:
        return "Steward drained it (reason steward:...), and no repair is open"
    return "taken out again after its repair; Slurm kept the old reason, and slurmctld's log says who took it out"


def remedy_for_orphan(node: Node, draft: Draft) -> str:
    """Return what a person should do about an orphan; empty while its agent may still come after the head's start."""
    view, back = draft.seen.agents.get(node.name), return_command(node.name)
    has_agent = view is not None and view.connected
    if has_agent and node.responding:
        return f"give it back with {back}"
    due = draft.seen.agents_since + draft.want.repair.agents_grace_s
    if not has_agent and draft.now < due:
        draft.wake(due)
        return ""
    # a silent machine must not be given back: jobs would die on it
    silent = f"its {'slurmd' if has_agent else 'agent'} is silent"
    if can_be_replaced(node.name, draft):
        command = f'`scontrol update nodename={node.name} state=fail reason="Action:Replace"`'
        return f"{silent}: have it replaced with {command}"
    return f"{silent}: repair it, then give it back with {back}"
