"""Warn of idle nodes whose GRES Slurm counts as used."""

from steward.model.events import Level
from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.leaks import CURE, leak_text


def note_leaks(draft: Draft) -> None:
    """Say once for each such node what is wrong, and how to mend it."""
    for name, gres in draft.overview.leaks.items():
        how = "Slurm lost count, as it does when a node is set DOWN while a requeued job still cleans up there"
        text = f"{leak_text(name, gres)}; {how}; {CURE}"
        draft.tell("node.gres_leak", text, once=f"leak:{name}", level=Level.WARNING, node=name)
    for key in [key for key in draft.noted if key.startswith("leak:")]:
        if NodeName(key.removeprefix("leak:")) not in draft.seen.gres_used:
            draft.tell_again(key)
