"""What is remembered of users' jobs is bounded in number, whoever has how many."""

from dataclasses import replace
from types import MappingProxyType

from steward.model.ids import JobId
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from steward.policy.prune import JOBS_KEPT
from tests.builders.picture import T0, Picture, a_cluster

HOSTILE, OTHER = 1666, 1000
MANY = JOBS_KEPT + 2000


def ended(id: int, uid: int, ago_s: float) -> JobMemory:
    return JobMemory(id=JobId(id), uid=uid, mode=ResumeMode.parse("1"), opted_at=T0 - ago_s, ended=T0 - ago_s)


def remembering(picture: Picture, *jobs: JobMemory) -> Picture:
    known = MappingProxyType({job.id: job for job in jobs})
    return replace(picture, memory=replace(picture.memory, jobs=known))


def test_who_has_thousands_of_short_jobs_fills_nobodys_memory_and_takes_nobody_elses_place() -> None:
    """Each costs every turn a moment for as long as it is remembered."""
    his = [ended(id, HOSTILE, ago_s=4000 - id / 10) for id in range(1, MANY)]
    others = [ended(100_000 + number, OTHER, ago_s=80_000 + number) for number in range(50)]
    kept = remembering(a_cluster(), *his, *others).plan().memory.jobs
    assert len(kept) == JOBS_KEPT
    assert {job.id for job in others} <= kept.keys()
    assert max(kept) in {job.id for job in others}
    assert JobId(MANY - 1) in kept
    assert JobId(1) not in kept


def test_a_job_that_slurm_shows_is_never_forgotten_for_its_number() -> None:
    picture = a_cluster().job(1, on=("n1",)).opted_in(1).then(1.0)
    known = picture.memory.jobs[JobId(1)]
    full = remembering(picture, known, *(ended(id, HOSTILE, ago_s=100) for id in range(2, MANY)))
    assert JobId(1) in full.plan().memory.jobs
