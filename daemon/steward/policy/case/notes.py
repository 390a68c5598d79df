"""The notes that a case takes from the picture about its machines and refused calls, before it is moved by the
facts."""

from dataclasses import replace

from steward.model.case import Case, Step
from steward.model.health import Advice
from steward.model.ids import InstanceId, Key
from steward.model.instance import Instance
from steward.policy.case.spares import free_spare, loan_of, needs_spare, shortage
from steward.policy.draft import Draft


def old_instance(case: Case, draft: Draft) -> InstanceId | None:
    """The instance behind the node when it was found bad: the one its agent named, else the newest one listed."""
    if case.old is not None and case.old.instance in draft.seen.instances:
        return case.old.instance
    listed = [i for i in _alive(case, draft) if not i.token.startswith(f"{case.id}-")]
    return max(listed, key=lambda i: (i.launched, i.id)).id if listed else None


def stale_instances(case: Case, draft: Draft) -> list[Instance]:
    """The instances that must be gone before a new instance is launched: the old one and earlier tries of this case."""
    ours = [i for i in _alive(case, draft) if i.token.startswith(f"{case.id}-") and i.token != case.token]
    old = [i for i in _alive(case, draft) if i.id == case.old_instance]
    return sorted((*ours, *old), key=lambda i: i.id)


def _alive(case: Case, draft: Draft) -> list[Instance]:
    """Every instance of the node that can still be terminated (a stopped one too)."""
    return draft.instances_of(case.node)


def note_old_instance(case: Case, draft: Draft) -> Case:
    """The instance that must go, once the provider's list shows it; it may not have when the case was opened."""
    if case.step is not Step.LAUNCH or case.old_instance is not None:
        return case
    return replace(case, old_instance=old_instance(case, draft))


def note_failures(case: Case, draft: Draft) -> Case:
    """Count a refused launch or reboot and choose when it is tried again."""
    if case.step is not Step.LAUNCH:
        return case
    verb = "reboot" if case.rung is Advice.REBOOT else "launch"
    key = Key(f"{verb}:{case.token}:{case.tries}")
    error = draft.seen.failures.get(key)
    return case if error is None or draft.asked_at(key) is None else _refused(case, error, draft)


def note_shortage(case: Case, draft: Draft) -> Case:
    """Want of a spare is want of capacity: it is told, and looked at again with growing patience."""
    if case.step is not Step.LAUNCH or not needs_spare(case, draft) or not draft.provider_is_fresh:
        return case
    has_one = loan_of(case, draft) is not None or free_spare(case, draft) is not None
    return case if has_one or draft.now < case.next_try else _refused(case, shortage(case, draft), draft)


def _refused(case: Case, error: str, draft: Draft) -> Case:
    rules = draft.want.repair
    for_want_of_capacity = error.startswith("capacity")
    steps = rules.capacity_backoff_s if for_want_of_capacity else (rules.retry_s,)
    wait = steps[min(case.tries, len(steps) - 1)]
    draft.tell("case.refused", f"{case.node}: {error}; again in {wait:.0f} s", node=case.node, case=case.id)
    refusals = case.refusals + (0 if for_want_of_capacity else 1)
    return replace(case, tries=case.tries + 1, refusals=refusals, next_try=draft.now + wait)
