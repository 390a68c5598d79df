"""Thousands of one user's runs that end at once hold up nobody else's, and each of them is judged."""

from collections import Counter
from dataclasses import replace

from steward.model.ids import JobId
from steward.model.job import JobState
from steward.policy.facts.blame import EVIDENCE_AFTER_S
from steward.policy.job.resume import ENDS_OF_USER
from tests.builders.picture import USER, Picture, a_cluster

OTHER = USER + 1
MANY = ENDS_OF_USER + 10


def ended() -> Picture:
    """Runs of one user on n1 have failed, and one of another user on n2."""
    picture = a_cluster()
    running = {id: 100 + id for id in range(1, MANY + 1)}
    template = picture.job(7, on=("n1",)).seen.jobs[JobId(7)]
    jobs = {JobId(number): replace(template, id=JobId(number)) for number in running.values()}
    picture = picture.see(jobs=jobs).job(5000, on=("n2",), user_id=OTHER)
    for number in running.values():
        picture = picture.opted_in(number)
    picture = picture.opted_in(5000, uid=OTHER).then(60.0)
    over = {id: replace(job, state=JobState.FAILED, ended=picture.now) for id, job in picture.seen.jobs.items()}
    return picture.see(jobs=over)


def when_judged(picture: Picture) -> dict[int, int]:
    """Each run -> the second of the end of its evidence's time at which it was found to be over for good."""
    late, found = picture.wait(EVIDENCE_AFTER_S - 10.0), dict[int, int]()
    for second in range(16):
        over = {event.job for event in late.plan().events if event.kind == "job.ended" and event.job is not None}
        found |= dict.fromkeys(over, second)
        late = late.then(1.0)
    return found


def test_of_one_user_so_many_are_judged_at_once_and_of_others_all_and_each_is_in_the_end() -> None:
    found = when_judged(ended())
    assert len(found) == MANY + 1
    at_once = Counter(found.values())
    assert max(at_once.values()) <= ENDS_OF_USER + 1
    assert found[JobId(5000)] == min(found.values())
