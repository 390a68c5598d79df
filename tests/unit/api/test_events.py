"""Events, chosen by node, kind and level, and followed over a restart of the head."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from steward.client import Client, HeadError, Unreachable
from steward.model.events import Event, EventFilter, Level
from steward.model.ids import JobId
from tests.builders.picture import a_cluster, n
from tests.fakes.api_bench import ApiBench


def happen(api: ApiBench, *words: tuple[str, str, Level]) -> None:
    api.store.add_events([Event(at=1.0, kind=k, text=f"{k} {on}", level=level, node=n(on)) for k, on, level in words])


MIXED = (
    ("node.lost", "n1", Level.WARNING),
    ("case.opened", "n1", Level.INFO),
    ("case.held", "n2", Level.ERROR),
    ("node.back", "n2", Level.INFO),
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (EventFilter(), ["node.lost", "case.opened", "case.held", "node.back"]),
        (EventFilter(node="n1"), ["node.lost", "case.opened"]),
        (EventFilter(kind="case."), ["case.opened", "case.held"]),
        (EventFilter(level="warning"), ["node.lost", "case.held"]),
        (EventFilter(node="n2", level="error", kind="case"), ["case.held"]),
        (EventFilter(node="n9"), []),
    ],
)
def test_events_are_chosen_by_node_kind_and_level(api: ApiBench, wanted: EventFilter, found: list[str]) -> None:
    happen(api, *MIXED)
    told = api.client().events(wanted=wanted)
    assert [event["kind"] for event in told] == found
    assert [event["kind"] for event in api.client().events() if wanted.takes(event)] == found


def test_the_newest_that_are_wanted_are_shown_however_many_others_there_are(api: ApiBench) -> None:
    happen(api, MIXED[2], *([MIXED[1]] * 1500), MIXED[2], *([MIXED[1]] * 300))
    wanted = EventFilter(level="error")
    assert len(api.client().events(limit=5, wanted=wanted)) == 2
    assert len(api.client().events(after=1, limit=5, wanted=wanted)) == 1


def test_a_level_that_is_none_is_refused(api: ApiBench) -> None:
    with pytest.raises(HeadError, match="level=loud: use one of info, warning, error"):
        api.client().events(wanted=EventFilter(level="loud"))


def test_a_kind_with_which_no_event_begins_is_refused(api: ApiBench) -> None:
    with pytest.raises(HeadError, match=r"kind=node\.lots: use node\."):
        api.client().events(wanted=EventFilter(kind="node.lots"))


@contextmanager
def scripted(answers: list[int | list[dict[str, Any]]]) -> Iterator[str]:
    """A head that gives these answers in turn: events, an HTTP error, or (0) none at all."""
    left = iter(answers)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = next(left, [])
            if answer == 0:
                self.close_connection = True
                return
            body = json.dumps(answer if isinstance(answer, list) else {"error": "starting"}).encode()
            self.send_response(200 if isinstance(answer, list) else answer)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def event(seq: int, kind: str = "node.lost", level: str = "warning") -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "level": level, "node": "n1"}


def test_who_follows_misses_nothing_while_the_head_restarts_and_sees_nothing_twice() -> None:
    lost: list[HeadError] = []
    answers: list[int | list[dict[str, Any]]] = [
        [event(2)],
        [event(1), event(2)],
        [event(3)],
        0,
        503,
        [event(3), event(4)],
    ]
    with scripted(answers) as url:
        stream = Client(url).follow(10, lost=lost.append)
        assert [one["seq"] for one in itertools.islice(stream, 4)] == [1, 2, 3, 4]
    assert [type(error) for error in lost] == [Unreachable, Unreachable]


def test_who_follows_sees_only_what_he_wants() -> None:
    answers: list[int | list[dict[str, Any]]] = [[], [], [event(1, level="info"), event(2, "case.held"), event(3)]]
    with scripted(answers) as url:
        stream = Client(url).follow(10, EventFilter(kind="node.", level="warning"))
        assert next(stream)["seq"] == 3


def test_who_follows_a_task_of_an_array_sees_no_other_jobs_events(api: ApiBench) -> None:
    """Also when Slurm has forgotten the task meanwhile."""
    task, other = JobId(7), JobId(8)
    api.show(a_cluster().job(task, array_job_id=JobId(17), array_task=1))
    api.store.add_events([Event(at=1.0, kind="job.met", text="old", job=task)])
    stream = api.client().follow(10, EventFilter(job="17_1"))
    assert next(stream)["text"] == "old"
    api.show(a_cluster())
    for text, job in (("theirs", other), ("mine", task)):
        api.store.add_events([Event(at=2.0, kind="job.retry", text=text, job=job)])
    assert next(stream)["text"] == "mine"


def test_a_head_that_is_not_there_at_first_is_an_error() -> None:
    with pytest.raises(Unreachable):
        next(Client("http://127.0.0.1:9").follow(10))
