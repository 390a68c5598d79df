"""Warn of reasons that are nearly commands, and of marks that belong to no repair."""

from steward.model.events import Level
from steward.model.text import one_line
from steward.policy.draft import Draft
from steward.policy.facts.forgotten import returned_by
from steward.policy.facts.orphan import is_orphan, way_out
from steward.policy.slurm_reasons import near_miss
from steward.policy.traits import Trait


def note_foreign(draft: Draft) -> None:
    """Say once about reasons that nearly are commands, and about marks without a case."""
    for node in draft.overview.with_reason(Trait.NEARLY_ORDERED, Trait.MARKED):
        meant = near_miss(node)
        text = node.reason.text if node.reason else ""
        short = one_line(text, 80)
        if meant:
            said = f"{node.name}: the reason '{short}' is not a command; write exactly {meant} to have it done"
            draft.tell("node.near_miss", said, once=f"near:{node.name}:{text}", level=Level.WARNING, node=node.name)
        if is_orphan(node, draft) and (way := way_out(node, draft)):
            what = "that case is over: see slurmctld's log for who took it out, then"
            what = what if returned_by(node, draft) else "no repair is open, and nothing gives it back by itself;"
            said = f"{node.name}: carries our mark '{short}', but {what} {way}"
            once = f"orphan:{node.name}:{text}:{way}"
            draft.tell("node.orphan", said, once=once, level=Level.WARNING, node=node.name)
