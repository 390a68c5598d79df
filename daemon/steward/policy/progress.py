"""How far a job's checkpoints are, kept for when its nodes cannot tell any more."""

from dataclasses import replace

from steward.model.job_report import Progress
from steward.model.resume import JobMemory, Saved
from steward.policy.draft import Draft


def note_saved(mem: JobMemory, draft: Draft) -> None:
    """Remember the newest checkpoint that an agent of the job's nodes tells of."""
    newest = mem.saved
    for node in sorted(mem.nodes):
        view = draft.seen.agents.get(node)
        for told in view.progress if view is not None else ():
            found = _saved(told) if told.job == mem.id else None
            if found is not None and (newest is None or found.is_newer_than(newest)):
                newest = found
    if newest != mem.saved:
        draft.jobs[mem.id] = replace(mem, saved=newest)


def _saved(told: Progress) -> Saved | None:
    if told.checkpoint_step is None and told.checkpointed is None:
        return None
    return Saved(path=told.checkpoint, step=told.checkpoint_step, at=told.checkpointed)
