"""Tell on which nodes an agent is expected."""

from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.traits import is_away_on_purpose


def expected_agents(draft: Draft) -> frozenset[NodeName]:
    """Return Slurm's nodes whose agents are expected; others may be connected all the same."""
    nodes = draft.seen.nodes
    # Not the nodes that are powered down or away on purpose, nor those of an API group that has no slot for them now.
    away = {name for name, node in nodes.items() if is_away_on_purpose(node)}
    unused = {name for name, node in nodes.items() if name not in draft.slots and belongs_to_slot(node, draft)}
    return frozenset(nodes.keys() - away - unused)
