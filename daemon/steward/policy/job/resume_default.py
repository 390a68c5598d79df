"""The site's default: jobs that are resumed though they did not ask for it."""

from collections.abc import Iterable

from steward.model.job import Job
from steward.model.resume_mode import ResumeMode, SiteDefault


def default_for(job: Job, defaults: Iterable[SiteDefault]) -> ResumeMode | None:
    """What the first default that fits says for a batch job; None where none does."""
    if not job.is_batch:
        return None
    return next((each.mode for each in defaults if _fits(each, job)), None)


def _fits(default: SiteDefault, job: Job) -> bool:
    asked = (
        (default.partition, job.partition.split(",")),
        (default.account, (job.account,)),
        (default.qos, (job.qos,)),
    )
    return all(not wanted or wanted in has for wanted, has in asked)
