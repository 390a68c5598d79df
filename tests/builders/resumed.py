"""Job 7 with an option, its failures on good nodes, and what a plan says of them."""

from dataclasses import replace
from typing import Any

from steward.model.agent_action import Action
from steward.model.ask import AskKind
from steward.model.ids import AskId, JobId
from steward.model.job import JobState
from steward.model.job_report import Progress
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from tests.builders.picture import Picture, a_cluster, n, names

J = JobId(7)


THREE = ("n1", "n2", "n3")


def mode(text: str) -> ResumeMode:
    return ResumeMode.parse(text)


def opted(text: str, **job: Any) -> Picture:
    return a_cluster().job(**job).opted_in(mode=mode(text)).then()


def failed(text: str, kind: AskKind = AskKind.BATCH, **ask: Any) -> Picture:
    """Its nodes were checked and are fine."""
    return opted(text).ask(kind, mode=mode(text), **ask).then(0.1).checked(*THREE)


def wishes(picture: Picture, kind: type[Action]) -> list[Action]:
    return [action for action in picture.plan().actions if isinstance(action, kind)]


def memory(picture: Picture) -> JobMemory:
    return picture.plan().memory.jobs[J]


def rules(picture: Picture) -> list[str]:
    return [attempt.why.rule for attempt in memory(picture).attempts]


def saves(picture: Picture, step: int | None, at: float | None = None) -> Picture:
    told = Progress(job=J, restart=0, node=n("n1"), checkpoint="/c", checkpoint_step=step, checkpointed=at)
    return picture.agent("n1", progress=(told,))


def runs_again(picture: Picture) -> Picture:
    back = picture.then(0.1).requeued().then(2.0).see(asks=()).checked()
    run = back.change_job(state=JobState.RUNNING, nodes=names(*THREE), batch_host=n("n1"), started=back.now)
    return run.then(1000.0)


def fails_again(picture: Picture, restart: int) -> Picture:
    asks = picture.ask(AskKind.BATCH, mode=mode("any:9"), restart=restart, id=7, node="n1", step=f"s{restart}")
    asks = asks.see(asks=tuple(replace(a, id=AskId(f"ask-{restart}")) for a in asks.seen.asks))
    return asks.then(0.1).checked(*THREE).then(0.1)
