"""Warn once of nodes whose state a person must know of: no case is about it."""

from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.mark import first_token
from steward.model.text import one_line
from steward.policy.case.marks import give_back_again
from steward.policy.draft import Draft
from steward.policy.facts.by_person import has_stray_mark, is_orphan, remedy_for_orphan
from steward.policy.facts.forgotten import returned_by
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.slurm_faults import MOST_HURT, breaks_launches_of, count_owners, response_text
from steward.policy.leaks import CURE, leak_text
from steward.policy.slurm_reasons import Response, near_miss, slurms_own
from steward.policy.traits import Trait


def note_foreign(draft: Draft) -> None:
    """Say once about reasons that nearly are commands, and about marks without a case; return forgotten nodes again."""
    for node in draft.overview.with_reason(Trait.NEARLY_ORDERED, Trait.MARKED):
        meant = near_miss(node)
        text = node.reason.text if node.reason else ""
        short = one_line(text, 80)
        if meant:
            said = f"{node.name}: the reason '{short}' is not a command; write exactly {meant} to have it done"
            draft.tell("node.near_miss", said, once=f"near:{node.name}:{text}", level=Level.WARNING, node=node.name)
        if has_stray_mark(node, draft):
            give_back_again(node, draft)
        if is_orphan(node, draft) and (way := remedy_for_orphan(node, draft)):
            what = "that case is over: see slurmctld's log for who took it out, then"
            what = what if returned_by(node, draft) else "no repair is open, and nothing gives it back by itself;"
            said = f"{node.name}: carries our mark '{short}', but {what} {way}"
            once = f"orphan:{node.name}:{text}:{way}"
            draft.tell("node.orphan", said, once=once, level=Level.WARNING, node=node.name)


def note_leaks(draft: Draft) -> None:
    """Say once for each idle node whose GRES Slurm counts as used what is wrong, and how to mend it."""
    for name, gres in draft.overview.leaks.items():
        how = "Slurm lost count, as it does when a node is set DOWN while a requeued job still cleans up there"
        text = f"{leak_text(name, gres)}; {how}; {CURE}"
        draft.tell("node.gres_leak", text, once=f"leak:{name}", level=Level.WARNING, node=name)
    for key in [key for key in draft.noted if key.startswith("leak:")]:
        if NodeName(key.removeprefix("leak:")) not in draft.seen.gres_used:
            draft.forget_told(key)


def tell_hurt(draft: Draft) -> None:
    """Say once of each node on which jobs of only one user could not start that nothing is done about it."""
    for name in [name for name, mem in draft.nodes.items() if len(mem.failed_launches) > MOST_HURT]:
        jobs = breaks_launches_of(name, draft)
        if len(jobs) > MOST_HURT and count_owners(jobs, draft) <= MOST_HURT:
            named = ", ".join(map(draft.shown_id, jobs[:8]))
            text = f"{name}: Slurm could not start jobs {named} there, which started elsewhere; all are of one user, so"
            text += f" nothing is done: see what only {name} lacks (folders of their output, their environment)"
            draft.tell("node.launches", text, once=f"launches:{name}:{jobs[0]}", level=Level.WARNING, node=name)


def tell_reasons(draft: Draft) -> None:
    """Say once for each reason of Slurm's own what it means and what is done about it."""
    for node in draft.overview.with_reason(Trait.SLURMS_WORDS):
        if node.reason is None or (row := slurms_own(node, draft.want.slurm_user)) is None:
            continue
        if row.response in (Response.LEAVE, Response.WATCH) or belongs_to_slot(node, draft):
            continue
        text, what = first_token(node.reason.text), response_text(row, node, draft)
        said = f"{node.name}: Slurm says '{one_line(text, 200)}' ({row.kind.value}): {what}"
        once = f"slurm:{node.name}:{row.name}:{node.reason.at:.0f}:{what}"
        draft.tell("node.slurm_reason", said, once=once, level=Level.WARNING, node=node.name)
