"""A follower answers by the head that leads: with the same answers, and no more and no less rights."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
import requests
from starlette.requests import Request
from starlette.responses import Response

from steward.adapters.wire.handshake import Hello
from steward.adapters.wire.passing import MAX_BODY, HeadWay
from steward.client import HeadError, Unreachable
from steward.head.follow import HTTP
from steward.model.access import FOLLOWS_HEADER, payload
from steward.model.events import Event
from steward.model.leadership import Leadership
from steward.ports import PortError
from tests.builders.picture import USER, a_cluster
from tests.fakes.aws_bench import signed
from tests.fakes.munge import FakeMunge
from tests.fakes.two_heads import OTHERS_NAME, BenchHead, TwoHeads, two_heads
from tests.fakes.until import FACT_S, until
from tests.fakes.wires import HELLO, greet_head, sealer


@pytest.fixture(scope="module")
def served() -> Iterator[TwoHeads]:
    with two_heads() as heads:
        yield heads


@pytest.fixture
def heads(served: TwoHeads) -> TwoHeads:
    served.lead(served.first, epoch=7)
    served.first.opened = served.other.opened = 0
    return served


def get(head: BenchHead, path: str, **headers: str) -> requests.Response:
    return requests.get(head.url + path, headers=headers, timeout=FACT_S)


PAGES = (
    "/",
    "/v1/nodes",
    "/v1/jobs",
    "/v1/doctor",
    "/v1/events?limit=5",
    "/v1/explain/node/n1",
    "/v1/explain/node/n%41",
    "/v1/none",
    "/v1/events?limit=many",
)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_the_follower_is_the_leaders(heads: TwoHeads, path: str) -> None:
    heads.other.api.latest = None
    theirs, ours = get(heads.first, path), get(heads.other, path)
    heads.other.api.show(a_cluster())
    assert (theirs.status_code, theirs.headers["Content-Type"]) == (ours.status_code, ours.headers["Content-Type"])
    assert theirs.content == ours.content
    assert len(ours.headers.get("Date", "").split(",")) == 2, "each header is there once"
    assert heads.other.opened == 1
    assert heads.first.opened == 0


@pytest.mark.parametrize("asked", ["the new leader", "the follower"])
def test_a_question_that_is_asked_in_a_takeover_waits_for_the_new_leaders_first_look(
    heads: TwoHeads, asked: str
) -> None:
    heads.other.api.latest = None
    heads.lead(heads.other, epoch=8)
    found: list[int] = []
    head = heads.other if asked == "the new leader" else heads.first
    asking = threading.Thread(target=lambda: found.append(get(head, "/v1/nodes").status_code))
    asking.start()
    asking.join(0.5)
    assert found == []
    heads.other.api.show(a_cluster())
    asking.join(FACT_S)

    assert found == [200]


def test_the_figures_of_a_follower_are_its_own(heads: TwoHeads) -> None:
    """Prometheus asks each head for what it knows itself."""
    assert get(heads.other, "/metrics").status_code == 200
    assert heads.other.opened == 0


def test_a_change_is_made_by_the_leader_for_who_may_make_it(heads: TwoHeads) -> None:
    assert heads.client(heads.other).pause("by way of the follower")["by"] == "root"
    until("it is paused", lambda: heads.first.api.store.memory.paused)
    assert not heads.other.api.store.memory.paused
    heads.client(heads.other).resume_actions()
    assert not heads.first.api.store.memory.paused


@pytest.mark.parametrize("uid", [USER, 901])
def test_who_may_not_change_something_may_not_by_way_of_a_follower(heads: TwoHeads, uid: int) -> None:
    told = []
    for head in (heads.first, heads.other):
        with pytest.raises(HeadError) as refused:
            heads.client(head, uid=uid).pause("no")
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert not heads.first.api.store.memory.paused


def test_without_a_proof_or_with_one_for_another_request_nothing_is_changed(heads: TwoHeads) -> None:
    body = b'{"why": "no"}'
    other = f"MUNGE {FakeMunge(heads.munged).encode(payload('POST', '/v1/resume-actions', body))}"
    for proof in ("", other, "MUNGE nonsense"):
        headers = {"Authorization": proof} if proof else {}
        answer = requests.post(f"{heads.other.url}/v1/pause", data=body, headers=headers, timeout=FACT_S)
        assert answer.status_code == 403
    assert not heads.first.api.store.memory.paused


def test_a_proof_that_was_used_once_is_refused_also_at_the_other_head(heads: TwoHeads) -> None:
    body = b'{"why": "once"}'
    headers = {"Authorization": f"MUNGE {FakeMunge(heads.munged).encode(payload('POST', '/v1/pause', body))}"}
    said = [
        requests.post(f"{head.url}/v1/pause", data=body, headers=headers, timeout=FACT_S).status_code
        for head in (heads.other, heads.first, heads.other)
    ]
    assert said == [200, 403, 403]
    heads.client(heads.first).resume_actions()


def test_an_aws_client_of_the_follower_has_its_signature_verified_by_the_leader(heads: TwoHeads) -> None:
    assert heads.other.aws.boto().list_clusters()["ClusterSummaries"] == []
    assert heads.other.opened == 1
    by_name = heads.other.url.replace("127.0.0.1", "localhost")
    body = b"{}"
    headers = signed("ListClusters", body, url=f"{by_name}/")
    assert requests.post(f"{by_name}/", data=body, headers=headers, timeout=FACT_S).status_code == 200
    headers["X-Amz-Target"] = "SageMaker.DescribeCluster"
    refused = requests.post(f"{by_name}/", data=body, headers=headers, timeout=FACT_S)
    assert refused.json()["__type"] == "InvalidSignatureException"


def test_a_change_of_an_aws_client_is_recorded_with_the_address_that_it_came_from(heads: TwoHeads) -> None:
    with pytest.raises(Exception, match="DeleteCluster"):
        heads.other.aws.boto().delete_cluster(ClusterName="none")
    assert dict(heads.first.aws.events[-1].data)["from"] == "127.0.0.1"
    assert not heads.other.aws.events


def test_a_request_for_another_host_is_refused_where_it_came_in(heads: TwoHeads) -> None:
    assert get(heads.other, "/v1/status", Host="evil.example").status_code == 421
    assert heads.other.opened == 0


def test_a_name_of_the_follower_alone_is_no_reason_for_the_leader_to_refuse(heads: TwoHeads) -> None:
    """The caller's browser has the follower's name, which the follower has compared with its own names."""
    assert get(heads.other, "/v1/status", Host=OTHERS_NAME).status_code == 200
    assert get(heads.first, "/v1/status", Host=OTHERS_NAME).status_code == 421


def test_no_header_makes_a_request_one_that_was_passed_on(heads: TwoHeads) -> None:
    answer = get(heads.first, "/v1/status", **{"Host": "evil.example", "steward.passed": "1"})
    assert answer.status_code == 421


def test_who_waits_for_events_gets_them_by_way_of_the_follower(heads: TwoHeads) -> None:
    newest = heads.client(heads.first).events(limit=1)
    after, found = int(newest[-1]["seq"]) if newest else 0, list[str]()

    def wait() -> None:
        found.extend(event["text"] for event in heads.client(heads.other).events(after=after, wait_s=20))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until("it waits at the leader", lambda: heads.first.api.news.waiters == 1)
    heads.first.api.store.add_events([Event(at=1.0, kind="node.lost", text="n1 is lost")])
    heads.first.api.show(a_cluster())
    waiting.join(FACT_S)
    assert found == ["n1 is lost"]


def test_a_caller_that_leaves_ends_its_request_at_the_leader(heads: TwoHeads) -> None:
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.get(f"{heads.other.url}/v1/events?after=999999&wait_s=30", timeout=(FACT_S, 1.0))
    until("nobody waits at the leader any more", lambda: heads.first.api.news.waiters == 0)


def test_large_bodies_come_whole_and_those_over_the_limit_are_refused_without_the_leader(heads: TwoHeads) -> None:
    took: list[int] = []

    async def large(scope: object, receive: object, send: object) -> None:
        request = Request(scope, receive)  # type: ignore[arg-type]
        took.append(len(await request.body()))
        answer = Response(bytes(range(256)) * 20_000, headers={"X-Two": "one"})
        answer.headers.append("X-Two", "two")
        await answer(scope, receive, send)  # type: ignore[arg-type]

    app = heads.first.doors[HTTP]
    heads.first.doors[HTTP] = large
    try:
        answer = requests.post(f"{heads.other.url}/x", data=b"b" * MAX_BODY, timeout=FACT_S)
        assert answer.content == bytes(range(256)) * 20_000
        assert answer.headers["X-Two"] == "one, two"
        assert took == [MAX_BODY]
        refused = requests.post(f"{heads.other.url}/x", data=b"b" * (MAX_BODY + 1), timeout=FACT_S)
        assert refused.status_code == 413
        assert len(took) == 1
    finally:
        heads.first.doors[HTTP] = app


def test_headers_that_are_too_long_in_sum_are_refused_in_one_line(heads: TwoHeads) -> None:
    answer = get(heads.other, "/v1/status", **{f"X-{number}": "\\" * 8000 for number in range(5)})
    assert answer.status_code == 431
    assert answer.json()["error"].startswith("its headers are too long: ")
    assert heads.other.opened == 0


def test_a_header_that_is_no_ascii_is_left_out(heads: TwoHeads) -> None:
    answer = requests.get(f"{heads.other.url}/v1/status", headers={"X-Odd": b"\xff\xfe"}, timeout=FACT_S)
    assert answer.status_code == 200


# Without a leader, and when it changes


def test_while_no_head_leads_one_line_says_so_and_that_nothing_was_done() -> None:
    with two_heads(wait_s=0.0) as heads:
        heads.lead(None, epoch=7)
        answer = get(heads.other, "/v1/status")
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("this head follows, and no head leads now;")
        assert answer.headers[FOLLOWS_HEADER]
        assert answer.headers["Retry-After"]
        with pytest.raises(Unreachable, match="no head leads now") as told:
            heads.client(heads.first, heads.other).pause("no")
        assert told.value.is_unheard


def test_a_leader_that_is_gone_is_named_with_the_reason() -> None:
    with two_heads(wait_s=0.0) as heads:
        assert heads.first.hub is not None
        heads.do(heads.first.hub.close())
        error = get(heads.other, "/v1/status").json()["error"]
        assert error.startswith(f"this head follows, and {heads.first.name} leads, but does not answer here: ")


def test_a_request_that_comes_during_a_takeover_is_answered_by_the_new_leader(heads: TwoHeads) -> None:
    heads.lead(None, epoch=7)
    found: list[int] = []
    asked = [
        threading.Thread(target=lambda: found.append(get(heads.other, "/v1/status").status_code)),
        threading.Thread(target=lambda: found.append(len(heads.client(heads.other).pause("during a takeover")))),
    ]
    for one in asked:
        one.start()
    heads.lead(heads.other, epoch=8)
    for one in asked:
        one.join(FACT_S)
    assert sorted(found) == [2, 200]
    assert heads.other.api.store.memory.paused
    heads.client(heads.other).resume_actions()


def stuck(heads: TwoHeads, asked: threading.Event) -> None:
    """The leader takes requests and answers none."""

    async def app(scope: object, receive: object, send: object) -> None:
        asked.set()
        await asyncio.sleep(FACT_S)

    heads.first.doors[HTTP] = app


def test_a_read_is_asked_again_at_the_next_leader_and_a_change_is_not() -> None:
    with two_heads() as heads:
        asked, said = threading.Event(), list[requests.Response]()
        stuck(heads, asked)
        for method, path in (("GET", "/v1/status"), ("POST", "/v1/pause")):
            heads.lead(heads.first, epoch=7)
            asked.clear()
            one = threading.Thread(
                target=lambda method=method, path=path: said.append(
                    requests.request(method, heads.other.url + path, timeout=FACT_S)
                )
            )
            one.start()
            until("the leader has it", asked.is_set)
            heads.lead(heads.other, epoch=8)
            one.join(FACT_S)
        read, change = said
        assert read.status_code == 200
        assert change.status_code == 502
        assert "whether it did what was asked is not known here; look before you ask again" in change.json()["error"]
        assert FOLLOWS_HEADER not in change.headers
        assert not heads.other.api.store.memory.paused


def test_two_heads_that_each_take_the_other_for_the_leader_pass_nothing_in_a_circle() -> None:
    with two_heads(wait_s=0.0) as heads:
        heads.first.leads = Leadership(leader=heads.other.name, epoch=7)
        heads.other.leads = Leadership(leader=heads.first.name, epoch=7)
        assert "it follows" in get(heads.other, "/v1/status").json()["error"]
        assert (heads.first.opened, heads.other.opened) == (0, 0)


# Who may pass requests on


def test_a_node_may_not_pass_requests_on() -> None:
    """It has the MUNGE key, but not the address of a head's host."""
    with two_heads() as heads:
        port = int(heads.first.name.rpartition(":")[2])

        async def dial(at: str, hello: Hello) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(at, 0))
            try:
                await greet_head(reader, writer, sealer(heads.munged), hello)
            finally:
                writer.transport.abort()

        with pytest.raises(PortError):
            heads.do(dial("127.0.0.9", replace(HELLO, is_head=True)))
        heads.do(dial("127.0.0.9", HELLO))
        heads.do(dial("127.0.0.1", replace(HELLO, is_head=True)))


def test_a_head_whose_proof_no_head_has_may_not_pass_requests_on() -> None:
    with two_heads() as heads:
        stranger = HeadWay(sealer(heads.munged, uid=USER, trusted=frozenset({0, USER})), "1.0")
        with pytest.raises(PortError):
            heads.do(stranger.open(heads.first.name))
