"""Mishaps of a machine that are no repair: it fails under a job, or users keep away from it by name."""

from steward.model.case import Case, Trigger
from steward.model.ids import NodeName
from steward.model.remedy import Blow, Mishap
from steward.policy.draft import Draft
from steward.policy.node.ladder import identity
from steward.policy.traits import Trait

_KEPT_OF_ONE = 64


def note_failure(case: Case, draft: Draft) -> None:
    """A node turned out to be lost, or fatally broken, while jobs ran on it."""
    if case.trigger not in (Trigger.LOST, Trigger.FATAL):
        return
    sizes = [len(draft.seen.jobs[id].nodes) for id in draft.overview.running_on.get(case.node, ())]
    if sizes:
        blow = Blow.NODE_FAIL_OF_MANY if max(sizes) > 1 else Blow.NODE_FAIL
        _note(case.hardware or case.node, Mishap(at=draft.now, blow=blow, node=case.node), draft)


def note_exclusions(draft: Draft) -> None:
    """Users whose jobs name nodes to keep away from; each user counts once a day for a node. The exclude lists of
    opted-in jobs are ours as well, and say nothing."""
    listed = {
        (draft.seen.jobs[id].user_id, node)
        for id in draft.ground.jobs.having(Trait.EXCLUDING) - draft.jobs.keys()
        for node in draft.seen.jobs[id].excluded
    }
    for user, node in sorted(listed):
        key = f"excluded:{user}:{node}"
        if key not in draft.noted and node in draft.seen.nodes:
            draft.noted[key] = draft.now
            _note(identity("", NodeName(node), draft), Mishap(at=draft.now, blow=Blow.EXCLUDED, node=node), draft)


def _note(piece: str, mishap: Mishap, draft: Draft) -> None:
    draft.mishaps[piece] = (*draft.mishaps.get(piece, ()), mishap)[-_KEPT_OF_ONE:]
