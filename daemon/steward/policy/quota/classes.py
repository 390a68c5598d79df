"""The priority class that a job's user names in its comment."""

import re
from collections.abc import Iterable

from steward.model.job import Job
from steward.model.text import printable
from steward.policy.draft import Draft

CLASS_WORD = "priority-class="
_CLASS = re.compile(r"(?:^|[\s,;])priority-class=([^\s,;]+)")
_LONGEST = 40


def class_of(job: Job) -> str:
    """Return the priority class that the job's user named; empty if none."""
    match = _CLASS.search(job.comment) if CLASS_WORD in job.comment else None
    return match[1] if match else ""


def unknown_class(job: Job, draft: Draft) -> str:
    """Return the words about a priority class that the site does not have; empty for any other."""
    name, known = class_of(job), draft.scheduler.classes if draft.scheduler is not None else ()
    if not name or name in {each.name for each in known}:
        return ""
    names = ", ".join(each.name for each in known) or "none"
    return f"priority class {printable(name, _LONGEST)} is none of this site's ({names}): it counts as the lowest"


def note_unknown_classes(jobs: Iterable[Job], draft: Draft) -> None:
    """Write an event about the first job of each user that names a class which the site does not have."""
    for job in jobs:
        if text := unknown_class(job, draft):
            told, once = f"job {job.shown_id}: its {text}", f"quota-class:{job.user_id}"
            draft.tell("quota.unknown_class", told, once=once, job=job.id)
