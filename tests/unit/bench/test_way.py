"""The phases from a fault to the tasks, read from logs."""

import time
from collections.abc import Iterator

import pytest

from tests.bench.way import steps, way

FAULT = 1795437942.5
HEAD = """\
2026-11-23T12:40:00.000+0000 info node=n2 agent gone: its connection ended
2026-11-23T12:45:42.292+0000 info node=n2 agent gone: its connection ended
2026-11-23T12:45:42.662+0000 warning node=n2 case=c1 event=node.suspect n2: the agent is gone
2026-11-23T12:45:42.700+0000 warning node=n2 case=c1 event=case.opened n2: the agent is gone and a second witness agrees
2026-11-23T12:45:42.800+0000 info node=n2 case=c1 action=DownNode key=down:c1 DownNode; why: the agent is gone
2026-11-23T12:45:42.900+0000 info node=n1 job=2002 a shim asks: its step failed
2026-11-23T12:45:43.000+0000 info node=n1 job=2002 event=job.decided job 2002: retry
2026-11-23T12:45:43.100+0000 info node=n1 job=7 action=AnswerAsk key=answer:n1-021ebf56-7.0.0.0 answer=retry AnswerAsk
2026-11-23T12:45:43.200+0000 info node=n1 action=AnswerAsk key=answer:n1-021ebf56-2002.0.0.0 answer=retry AnswerAsk
no line of a log
"""
SLURMD = """\
[2026-11-23T12:45:41.000] launch task StepId=2002.0 request from UID:0 GID:0 HOST:127.0.0.1 PORT:1
[2026-11-23T12:45:43.500] launch task StepId=2002.1 request from UID:0 GID:0 HOST:127.0.0.1 PORT:2
[2026-11-23T12:45:43.400] launch task StepId=2002.1 request from UID:0 GID:0 HOST:127.0.0.1 PORT:3
"""


@pytest.fixture(autouse=True)
def slurmd_writes_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_every_phase_is_seconds_after_the_fault_and_older_lines_do_not_count() -> None:
    found = way(HEAD.splitlines(), SLURMD.splitlines(), node="n2", job=2002, fault=FAULT, tasks=FAULT + 1.25)
    assert found == pytest.approx(
        {
            "seen": -0.208,
            "second source": 0.2,
            "drained": 0.3,
            "asked": 0.4,
            "decided": 0.5,
            "answered": 0.7,
            "srun started": 0.9,
            "tasks": 1.25,
        }
    )


def test_a_phase_takes_what_lies_between_it_and_the_one_before() -> None:
    assert steps({"tasks": 1.0, "seen": 0.25, "answered": 0.75}) == {"seen": 0.25, "answered": 0.5, "tasks": 0.25}
