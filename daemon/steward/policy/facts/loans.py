"""Spares of fixed machines: which are lent, and for which node one may become free."""

from collections.abc import Mapping

from steward.model.ids import NodeName
from steward.model.instance import Instance
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention


def loans(draft: Draft) -> Mapping[NodeName, Instance]:
    """Return the loans by spare."""
    listed = (each for spare in sorted(draft.want.spares) for each in draft.instances_of(spare))
    return {each.node: each for each in listed if each.token}


def is_idle_spare(name: NodeName, draft: Draft) -> bool:
    """Return whether the node is a spare that is not lent."""
    return name in draft.want.spares and name not in loans(draft)


def can_be_replaced(node: NodeName, draft: Draft) -> bool:
    """Return whether a provider makes machines for the node, or a spare may become free for it."""
    slot = draft.slots.repairable.get(node)
    return slot is not None and (not slot.fixed or _can_have_spare(node, draft))


def _can_have_spare(node: NodeName, draft: Draft) -> bool:
    """Return whether a spare is named for the node's partitions. An unused spare gets no spare itself."""
    serves = not (draft.provider_is_fresh and is_idle_spare(node, draft))
    return serves and any(may_stand_in_for(name, node, draft) for name in draft.want.spares - {node})


def may_stand_in_for(spare: NodeName, broken: NodeName, draft: Draft) -> bool:
    """Return whether the nodes share a partition, or their partitions are unknown."""
    of_spare, of_broken = draft.seen.nodes.get(spare), draft.seen.nodes.get(broken)
    if of_spare is None or of_broken is None or not of_broken.partitions:
        return True
    return not of_broken.partitions.isdisjoint(of_spare.partitions)


def lent_nodes(draft: Draft) -> frozenset[NodeName]:
    """Return the hot spares that are lent to jobs now."""
    lent = (draft.jobs[id].lent for id in jobs_needing_attention(draft))
    return frozenset(node for one in lent if one is not None for node in one.nodes)


LENT_FOR_S = 60.0
"""How long nodes are lent to a job: by then it has started, and the nodes that it did not take are hot spares again."""
