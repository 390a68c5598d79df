"""Job 7 with an option, its failures on good nodes, and what a plan says of them."""

from typing import Any

from steward.model.agent_action import Action
from steward.model.ask import AskKind
from steward.model.ids import JobId
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from tests.builders.picture import Picture, a_cluster

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
