"""Whether it was Slurm's controller that forgot our mark, or a person who gave the node back.

slurmctld writes its state a few seconds late (tried on 22.05: up to five), and can be started without it. One that
comes back so does not know of a mark, and the node takes jobs again. When it last began anew is read with the
partitions: under a controller that has shown our mark, only a person takes it away.
"""

from steward.model.case import Case
from steward.policy.draft import Draft

_WHOLE_S = 1.0
"""Slurm tells its beginning in whole seconds."""


def has_forgotten(case: Case, draft: Draft) -> bool | None:
    """Of a node in service without our mark. None: it is not known yet; False where nobody asked."""
    began = _began(draft)
    if case.marked is None or not began:
        return False
    if not _unmarked_since(case, draft) <= draft.seen.partitions_at <= draft.now:
        draft.wake(draft.now + _WHOLE_S)
        return None
    if _under_key(case, began) in draft.noted:
        return False
    was_shown = any(key.startswith(f"under:{case.id}:") for key in draft.noted)
    return was_shown or began > case.marked - _WHOLE_S


def note_mark(case: Case, draft: Draft) -> None:
    """The node bears our mark, under the controller that was last seen."""
    draft.noted.pop(_unmarked_key(case), None)
    if began := _began(draft):
        draft.first_seen(_under_key(case, began))


def _unmarked_since(case: Case, draft: Draft) -> float:
    """Never in the future, whatever the clock did."""
    key = _unmarked_key(case)
    draft.noted[key] = min(draft.first_seen(key), draft.now)
    return draft.noted[key]


def _began(draft: Draft) -> float:
    """When slurmctld last began anew (Unix s); 0 where it is not known."""
    return max((partition.loaded for partition in draft.seen.partitions.values()), default=0.0)


def _unmarked_key(case: Case) -> str:
    return f"unmarked:{case.id}"


def _under_key(case: Case, began: float) -> str:
    return f"under:{case.id}:{began:.0f}"
