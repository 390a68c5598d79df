"""What befalls a machine without any repair of it: it fails under a job, or users keep away from it by name."""

from steward.model.case import Case, Trigger
from steward.model.ids import NodeName
from steward.model.remedy import Blow, Mishap
from steward.policy.draft import Draft
from steward.policy.ladder import identity

_KEPT_OF_ONE = 64
_LISTED_MOST = 16
"""A user who excludes more nodes than this has another reason than their health."""


def note_failure(case: Case, draft: Draft) -> None:
    """A node turned out to be lost, or fatally broken, while jobs ran on it."""
    if case.trigger not in (Trigger.LOST, Trigger.FATAL):
        return
    sizes = [len(job.nodes) for job in draft.seen.jobs.values() if job.is_active and case.node in job.nodes]
    if sizes:
        blow = Blow.NODE_FAIL_OF_MANY if max(sizes) > 1 else Blow.NODE_FAIL
        _note(case.hardware or case.node, Mishap(at=draft.now, blow=blow, node=case.node), draft)


def note_exclusions(draft: Draft) -> None:
    """Users whose jobs name nodes to keep away from; each user counts once a day for a node. The exclude lists of
    opted-in jobs are ours as well, and say nothing."""
    listed = {
        (job.user_id, node)
        for job in draft.seen.jobs.values()
        if job.excluded and len(job.excluded) <= _LISTED_MOST and not job.is_over and job.id not in draft.jobs
        for node in job.excluded
    }
    for user, node in sorted(listed):
        key = f"excluded:{user}:{node}"
        if key not in draft.noted and node in draft.seen.nodes:
            draft.noted[key] = draft.now
            _note(identity("", NodeName(node), draft), Mishap(at=draft.now, blow=Blow.EXCLUDED, node=node), draft)


def _note(piece: str, mishap: Mishap, draft: Draft) -> None:
    draft.mishaps[piece] = (*draft.mishaps.get(piece, ()), mishap)[-_KEPT_OF_ONE:]
