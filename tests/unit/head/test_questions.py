"""Nodes ask after the past of jobs: who is told, who waits, and how many may."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import facts_of
from steward.head.hearing import MAX_OF_NODE, Questions
from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts

FACTS = ResumeFacts(uid=1000, resumes=2)
JOB = JobId(7)
FOR_EVER_S = 3600.0


@dataclass(eq=False)
class Asker:
    node: NodeName
    told: list[Frame] = field(default_factory=list)

    def send(self, frame: Frame) -> None:
        self.told.append(frame)

    @property
    def answers(self) -> list[tuple[JobId, ResumeFacts | None]]:
        return [facts_of(frame) for frame in self.told]


@dataclass
class Head:
    places: dict[JobId, set[NodeName]] = field(default_factory=dict)
    rings: int = 0

    def questions(self, patience_s: float) -> Questions:
        return Questions(
            facts=lambda job: FACTS,
            nodes_of=lambda job: self.places.get(job, set()),
            ring=self._ring,
            patience_s=patience_s,
        )

    def _ring(self) -> None:
        self.rings += 1


def _tell(story: Callable[[Head], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(Head()), 30.0))


async def _until(true: Callable[[], object]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def test_who_asks_for_more_jobs_than_may_wait_is_told_nothing_and_others_wait_all_the_same() -> None:
    async def story(head: Head) -> None:
        questions, nosy, other = head.questions(FOR_EVER_S), Asker(NodeName("n1")), Asker(NodeName("n2"))
        for job in range(100, 101 + MAX_OF_NODE):
            questions.ask(nosy, JobId(job))
        assert nosy.answers == [(100 + MAX_OF_NODE, None)]
        questions.ask(other, JOB)
        head.places[JOB] = {NodeName("n2")}
        await _until(lambda: other.told)
        assert other.answers == [(JOB, FACTS)]

    _tell(story)


def test_where_no_picture_shows_the_job_there_nothing_is_told_in_the_end() -> None:
    async def story(head: Head) -> None:
        head.places[JOB] = {NodeName("n2")}
        questions, asker = head.questions(0.0), Asker(NodeName("n1"))
        questions.ask(asker, JOB)
        await _until(lambda: asker.told)
        assert asker.answers == [(JOB, None)]

    _tell(story)


def test_many_nodes_of_a_job_wake_the_cycle_once_and_each_is_answered_once() -> None:
    async def story(head: Head) -> None:
        questions, askers = head.questions(FOR_EVER_S), [Asker(NodeName(f"n{at}")) for at in range(20)]
        for asker in askers * 2:
            questions.ask(asker, JOB)
        assert head.rings == 1
        head.places[JOB] = {asker.node for asker in askers}
        await _until(lambda: all(asker.told for asker in askers))
        assert {tuple(asker.answers) for asker in askers} == {((JOB, FACTS),)}

    _tell(story)


def test_what_a_connection_that_ended_asked_leaves_its_room_to_the_next() -> None:
    async def story(head: Head) -> None:
        questions, before, after = head.questions(FOR_EVER_S), Asker(NodeName("n1")), Asker(NodeName("n1"))
        for job in range(100, 100 + MAX_OF_NODE):
            questions.ask(before, JobId(job))
        questions.drop(before)
        questions.ask(after, JOB)
        head.places[JOB] = {NodeName("n1")}
        await _until(lambda: after.told)
        assert (before.told, after.answers) == ([], [(JOB, FACTS)])

    _tell(story)
