"""The progress that a job's agents report. The last checkpoint is remembered for when the job's nodes are lost."""

from collections.abc import Collection
from dataclasses import replace

from steward.model.ids import JobId, NodeName
from steward.model.job_report import Progress
from steward.model.resume import JobMemory, Saved
from steward.policy.draft import Draft
from steward.policy.traits import Trait


def progress_of(id: JobId, nodes: Collection[NodeName], draft: Draft, *, restart: int | None = None) -> list[Progress]:
    """Return the progress of a job that the agents of `nodes` report; of all its runs if `restart` is None."""
    if draft.ground.agents.having(Trait.TELLING).isdisjoint(nodes):
        return []
    views = [draft.seen.agents[node] for node in sorted(nodes) if node in draft.seen.agents]
    told = [one for view in views for one in view.progress if one.job == id]
    return told if restart is None else [one for one in told if one.restart == restart]


def note_saved(mem: JobMemory, draft: Draft) -> None:
    """Remember the last checkpoint that an agent of the job's nodes reports."""
    newest = mem.saved
    for told in progress_of(mem.id, mem.nodes, draft):
        found = _saved(told)
        if found is not None and (newest is None or _is_later(found, newest)):
            newest = found
    if newest != mem.saved:
        draft.jobs[mem.id] = replace(mem, saved=newest)


def _saved(told: Progress) -> Saved | None:
    """Return the checkpoint of a report; None if the report has none."""
    if told.checkpoint_step is None and told.checkpointed is None:
        return None
    return Saved(path=told.checkpoint, step=told.checkpoint_step, at=told.checkpointed)


def _is_later(found: Saved, known: Saved) -> bool:
    """Return whether the checkpoint was written later, whatever its step."""
    # two nodes may report the same checkpoint with different times
    if found.step is not None and (found.path, found.step) == (known.path, known.step):
        return False
    if found.at is not None and known.at is not None:
        # compare times: steps count from 0 again in a next stage, or when the user goes back
        return found.at > known.at
    return found.is_newer_than(known)
