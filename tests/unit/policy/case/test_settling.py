"""A degraded finding of a check stands for a while before its node is drained; nothing else waits."""

from typing import Any

import pytest

from steward.model.action import DownNode, DrainNode
from steward.model.ask import AskKind
from steward.model.health import Advice, Severity
from tests.builders.picture import Picture, a_cluster

SETTLE_S = 10.0


def settling(severity: Severity = Severity.DEGRADED, **fields: Any) -> Picture:
    fields = {"check": "mounts", "text": "read-only", "event": False, "advice": Advice.REBOOT} | fields
    return a_cluster(settle_degraded_s=SETTLE_S).failing("n2", severity, **fields)


def touched(picture: Picture) -> list[str]:
    return [action.node for action in picture.plan().actions if isinstance(action, DrainNode | DownNode)]


def test_it_is_looked_at_again_when_its_time_is_over_and_the_node_is_drained_then() -> None:
    picture = settling()
    decided = picture.plan()
    assert (touched(picture), decided.wake_at) == ([], picture.now + SETTLE_S)
    assert touched(picture.then(SETTLE_S - 0.1)) == []
    assert touched(picture.then(SETTLE_S)) == ["n2"]


def test_its_time_is_measured_on_the_heads_clock_and_not_on_its_nodes() -> None:
    assert touched(settling(at=1.0)) == []


def test_its_time_begins_anew_when_it_passed_meanwhile() -> None:
    passed = settling().then(6.0).agent("n2", findings=()).then(6.0)
    assert touched(passed.failing("n2", Severity.DEGRADED, check="mounts", event=False).then(6.0)) == []


@pytest.mark.parametrize("picture", [settling(Severity.FATAL), settling(event=True)])
def test_a_fatal_finding_and_an_event_are_acted_on_at_once(picture: Picture) -> None:
    assert touched(picture) == ["n2"]


def test_a_job_that_asks_why_it_failed_does_not_wait_for_it() -> None:
    picture = settling().job(on=("n1", "n2")).opted_in()
    assert touched(picture) == []
    assert touched(picture.ask(AskKind.BATCH)) == ["n2"]
