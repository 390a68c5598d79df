"""An agent's line to its coordinator: what is about processes of the past does not touch those of now."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from steward.job.elastic_link import AWAY_S, Link
from steward.testbed.wait import wait_until


class Coordinator:
    """The other end of the line."""

    def __init__(self, server: socket.socket) -> None:
        self.line, _ = server.accept()
        self.line.settimeout(30)
        self.read = self.line.makefile("rb")

    def hear(self, key: str) -> dict[str, Any]:
        while key not in (heard := json.loads(self.read.readline())):
            pass
        return dict(heard)

    def close(self) -> None:
        self.read.close()
        self.line.close()

    def say(self, **line: Any) -> None:
        self.line.sendall(json.dumps(line).encode() + b"\n")

    def form(self, generation: int) -> None:
        self.say(form={"generation": generation, "members": ["n1"], "rank": 0, "world": 1, "address": "n1", "port": 7})


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Link, Coordinator]]:
    for name in ("STEWARD_ELASTIC_LOCAL", "STEWARD_ELASTIC_GENERATION"):  # the link sets them for its processes
        monkeypatch.setenv(name, "")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_ADDRESS": f"127.0.0.1:{port}"}
        made = Link(place | {"STEWARD_ELASTIC_TOKEN": "word", "STEWARD_ELASTIC_NODE": "n1"})
        yield made, Coordinator(server)
        made.close()


def test_what_ends_while_its_coordinator_begins_anew_is_judged_by_the_new_one(link: tuple[Link, Coordinator]) -> None:
    agent, coordinator = link

    def coordinate() -> None:
        coordinator.hear("wait")
        coordinator.form(1)

    threading.Thread(target=coordinate).start()
    assert agent.wait("n1", 7, 30, 60)
    coordinator.close()
    wait_until("the line is gone", lambda: not agent.connected, 30)
    assert agent.ended("failed") == "wait"
    agent.away_since -= AWAY_S
    assert agent.ended("failed") == "failed", "none came"


def test_a_second_word_to_stop_that_comes_late_does_not_stop_the_next_generation(
    link: tuple[Link, Coordinator],
) -> None:
    agent, coordinator = link

    def coordinate() -> None:
        coordinator.hear("wait")
        coordinator.form(1)
        coordinator.hear("wait")
        coordinator.say(restart=1)
        coordinator.form(2)
        coordinator.say(asked=2)

    threading.Thread(target=coordinate).start()
    forms = [agent.wait("n1", 7, 30, 60) for _ in range(2)]
    assert [form and form["generation"] for form in forms] == [1, 2]

    assert not agent.restart, "a loop of restarts, each of which brings about the next"
