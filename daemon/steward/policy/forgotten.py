"""Whether it was Slurm's controller that forgot our mark, or a person who gave the node back.

slurmctld writes its state a few seconds late (tried on 22.05: up to five). One that dies sooner after a mark comes back
without it, and the node takes jobs again. When it last began anew is read with the partitions.
"""

from steward.model.case import Case
from steward.policy.draft import Draft

BEGAN_WITHIN_S = 600.0
"""From a mark that was lost to the controller that does not know of it: a failover takes minutes."""
_WHOLE_S = 1.0
"""Slurm tells its beginning in whole seconds."""


def has_forgotten(case: Case, draft: Draft) -> bool | None:
    """Of a node in service without our mark. None: it is not known yet; False where nobody asked."""
    if case.marked is None or not draft.seen.partitions_at:
        return False
    if draft.seen.partitions_at < draft.first_seen(_unmarked_key(case, draft)):
        draft.wake(draft.now + _WHOLE_S)
        return None
    began = max((partition.loaded for partition in draft.seen.partitions.values()), default=0.0)
    marked = _marked_at(case, draft)
    return marked - _WHOLE_S < began <= marked + BEGAN_WITHIN_S


def note_mark(case: Case, draft: Draft) -> None:
    """The node bears our mark; where it had lost it, who gives the node back from now on is a person."""
    if _unmarked_key(case, draft) in draft.noted:
        draft.noted[_signed_key(case)] = draft.now


def _marked_at(case: Case, draft: Draft) -> float:
    return max(case.marked or 0.0, draft.noted.get(_signed_key(case), 0.0))


def _unmarked_key(case: Case, draft: Draft) -> str:
    return f"unmarked:{case.id}:{_marked_at(case, draft):.0f}"


def _signed_key(case: Case) -> str:
    return f"signed:{case.id}"
