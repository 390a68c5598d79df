"""The pages for people as a browser gets them: whole without JavaScript, all from here, hostile names harmless."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import requests

from steward.api.page import PAGES
from steward.api.page.words import ago, with_code_marked
from steward.api.routes import ROUTES
from steward.model.events import Event
from steward.model.health import Finding, Outcome, Severity
from steward.model.ids import CaseId, JobId
from steward.model.setting_types import RepairMode
from steward.model.text import age, local_time
from tests.builders.api_cluster import an_api_cluster
from tests.builders.page_site import a_busy_site, told_of
from tests.builders.picture import T0, Picture, a_cluster, changed, n
from tests.builders.want import but
from tests.fakes.api_bench import ApiBench, an_api
from tests.fakes.page_bench import pages_of, show_as_it_is
from tests.fakes.until import FACT_S

STEERING = "\x1b[31m\u202e\u2066\u200b\x07\x9b\x7f"
"""Control and bidi characters: what they stand before is shown as something else."""
HOSTILE = f"<script>alert(1)</script>\"'&{STEERING}"
ONE_OF_EACH = {
    "/node/{name}": "/node/n3",
    "/job/{name}": "/job/100",
    "/case/{name}": "/case/c10",
    "/incident/{name}": "/incident/agents",
    "/check/{name}": "/check/gpu.ecc",
    "/quota/{name}": "/quota/ml",
    "/elastic/{name}": "/elastic/101",
}
PATHS = [ONE_OF_EACH.get(one.path, one.path) for one in PAGES if one.path != "/group/{name}"]
"""Every page of the busy site, which has no instance group."""
_IN_PATHS = {"{job}": "100", "{name}": "n3", "{team}": "ml"}
API_PATHS = [
    re.sub(r"{\w+}", lambda found: _IN_PATHS.get(found[0], "x"), one.path) for one in ROUTES if one.method == "GET"
]
FILES = ("/page/page.css", "/page/page.js", "/page/icon.svg")


def page(api: ApiBench, path: str = "/") -> str:
    answer = requests.get(api.url + path, timeout=FACT_S)
    assert answer.status_code == 200, answer.text
    return answer.text


def part(api: ApiBench, path: str = "/") -> str:
    """What changes of a page."""
    return requests.get(api.url + path, headers={"Steward-Part": "main"}, timeout=FACT_S).text


def with_a_lost_node_and_a_job() -> Picture:
    return a_cluster().job().opted_in().lost("n2")


@pytest.fixture(scope="module")
def site() -> Iterator[ApiBench]:
    with pages_of(a_busy_site(40), told_of()) as found:
        yield found


def test_the_first_page_shows_what_is_wrong_what_is_done_and_what_waits(site: ApiBench) -> None:
    html = page(site)
    wrong, doing, waits = html.split('aria-labelledby="')[1:4]
    for piece in ("/incident/agents", 'href="/node/n5"', "Xid 94"):
        assert piece in wrong
    for piece in ("/case/c9", 'href="/job/100"', ">deep check d4</a>"):
        assert piece in doing
    for piece in ("/case/c8", "<code>steward approve c10</code>", "needs approval", "group:gpu", "drained by admin"):
        assert piece in waits


def test_a_picture_of_a_fresh_loss_is_shown(api: ApiBench) -> None:
    api.show(with_a_lost_node_and_a_job())
    api.store.add_events([Event(at=1_700_000_000.0, kind="node.lost", text="n2 is lost")])
    html = page(api)
    for piece in (
        "testing",
        'href="/node/n6"',
        'class="cell lost"',
        'href="/job/7"',
        "5</b> of 6 agents",
        "n2 is lost",
    ):
        assert piece in html
    assert "<b>1</b> open repair<" in html
    assert "DownNode" in page(api, "/plan")


@pytest.mark.parametrize("path", PATHS)
def test_every_page_has_an_address_of_its_own_and_a_part_that_changes(site: ApiBench, path: str) -> None:
    html = page(site, path)
    assert part(site, path) in html
    assert html.count("<h1") == 1
    links = set(re.findall(r'href="(/[^"?]*)', html)) - {"/", *FILES}
    known = [re.compile(re.sub(r"{name}", "[^/]+", one.path)) for one in PAGES]
    assert [link for link in links if link not in FILES and not any(one.fullmatch(link) for one in known)] == []


@pytest.mark.parametrize("path", [*PATHS, *FILES])
def test_nothing_comes_from_elsewhere_and_nothing_is_inline(site: ApiBench, path: str) -> None:
    answer = requests.get(site.url + path, timeout=FACT_S)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", answer.text) == []
    if path not in FILES:
        assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=", answer.text) == []


def a_hostile_site() -> tuple[Picture, list[Event]]:
    """Every text that a user or a node may choose is hostile."""
    site = a_busy_site(40)
    picture = site.change_job(100, name=HOSTILE, account=HOSTILE, partition=HOSTILE, reason=HOSTILE)
    picture = picture.failing("n3", Severity.FATAL, check="gpu.ecc", text=HOSTILE).drained("n4", HOSTILE)
    memory = picture.memory
    case, run = memory.cases[CaseId("c10-1")], memory.elastic[JobId(101)]
    why = replace(case.why, text=HOSTILE, evidence=(HOSTILE,))
    attempt = replace(memory.jobs[JobId(100)].attempts[0], why=why)
    memory = replace(
        memory,
        ledger={id: tuple(replace(run, name=HOSTILE) for run in runs) for id, runs in memory.ledger.items()},
        cases=changed(memory.cases, case.id, lambda old: replace(old, why=why, check=HOSTILE, hardware=HOSTILE)),
        jobs=changed(memory.jobs, JobId(100), lambda old: replace(old, attempts=(attempt,))),
        incidents=changed(memory.incidents, "agents", lambda old: replace(old, text=HOSTILE)),
        breakers=changed(memory.breakers, "group:gpu", lambda old: replace(old, text=HOSTILE)),
        elastic=changed(
            memory.elastic, run.id, lambda old: replace(old, why=HOSTILE, spec=HOSTILE, why_no_coordinator=HOSTILE)
        ),
        quotas=changed(memory.quotas, "q-ml", lambda old: replace(old, description=HOSTILE, failure=HOSTILE)),
    )
    told = [Event(at=1.0, kind=HOSTILE, text=HOSTILE, node=n("n3"), job=JobId(100), case=case.id)]
    return replace(picture, memory=memory), told


def test_hostile_names_are_text_on_every_page() -> None:
    with pages_of(*a_hostile_site()) as api:
        for path in PATHS:
            queries = "" if "{" in path else "?q={0}&user={0}&month=2023-11".format("%3Cscript%3E%E2%80%AE")
            for address in (path, path + queries):
                html = page(api, address)
                assert "<script>alert" not in html
                assert "<script>\u202e" not in html
                assert not [char for char in html if not char.isprintable() and char != "\n"], address
        for path in ("/", "/job/100", "/node/n3", "/node/n4", "/case/c10", "/incident/agents", "/events"):
            assert "alert(1)" in page(api, path), path


def test_hostile_names_steer_no_terminal_that_shows_an_answer_of_the_api() -> None:
    with pages_of(*a_hostile_site()) as api:
        for path in API_PATHS:
            answer = requests.get(api.url + path, timeout=FACT_S)
            assert not [char for char in answer.text if not char.isprintable() and char != "\n"], path
        jobs = requests.get(f"{api.url}/v1/jobs", timeout=FACT_S).json()
    assert HOSTILE in [job["name"] for job in jobs], "a program gets the name as it is"


def test_groups_are_shown(api: ApiBench) -> None:
    api.show_groups(an_api_cluster())
    assert 'href="/group/workers"' in page(api, "/groups")
    assert "in service, at least" in page(api, "/group/workers")
    assert ">workers</a>" in page(api)


def test_a_head_that_only_reports_says_so_first() -> None:
    bench = ApiBench()
    bench.want = replace(bench.want, repair=but(bench.want.repair, mode=RepairMode.REPORT))
    with an_api(bench) as api:
        html = page(api)
    assert html.index('class="alert warning"') < html.index("<h2")


def test_a_node_and_a_job_have_pages_with_their_explanation(api: ApiBench) -> None:
    api.show(with_a_lost_node_and_a_job())
    assert "second source" in page(api, "/node/n2")
    assert "resumes are used" in page(api, "/job/7")


def test_what_is_not_there_is_said_in_one_plain_line(site: ApiBench) -> None:
    names = ("/node/n99", "/job/99", "/job/x", "/case/c99", "/check/x", "/incident/x", "/group/x", "/quota/x")
    for path in (*names, "/elastic/x", "/page/none.js"):
        answer = requests.get(site.url + path, timeout=FACT_S)
        assert answer.status_code == 404
        assert "text/html" not in answer.headers["content-type"]


def test_before_the_first_look_the_browser_is_asked_to_come_again(api: ApiBench) -> None:
    api.latest = None
    answer = requests.get(f"{api.url}/", timeout=FACT_S)
    assert (answer.status_code, answer.headers["refresh"]) == (503, "5")


def test_the_search_goes_straight_to_what_has_that_name(site: ApiBench) -> None:
    def found(word: str) -> str:
        answer = requests.get(f"{site.url}/search", params={"q": word}, timeout=FACT_S, allow_redirects=False)
        return answer.headers["location"]

    assert [found(word) for word in ("n3", "100", "c10", "c10-1")] == [
        "/node/n3",
        "/job/100",
        "/case/c10",
        "/case/c10-1",
    ]
    assert found("//evil.example/") == "/nodes?q=%2F%2Fevil.example%2F"


def test_a_large_cluster_is_looked_at_every_two_seconds_at_most() -> None:
    picture = a_busy_site(1200)
    with pages_of(picture) as api:
        first = part(api)
        show_as_it_is(api, picture.lost("n20"), number=2)
        assert part(api) == first
        api.clock.at += 2.0
        assert part(api) != first


def test_a_page_is_made_once_for_all_who_look(api: ApiBench) -> None:
    first = part(api)
    api.show(with_a_lost_node_and_a_job())
    assert part(api) != first


def test_each_cycle_is_told_to_those_who_watch(api: ApiBench) -> None:
    with requests.get(f"{api.url}/page/news", stream=True, timeout=FACT_S) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines(decode_unicode=True)
        assert next(lines) == "data: 1"


def test_a_post_is_still_the_aws_endpoint(api: ApiBench) -> None:
    answer = requests.post(f"{api.url}/", data="{}", timeout=FACT_S)
    assert "text/html" not in answer.headers.get("content-type", "")
    assert answer.status_code >= 400


def test_a_job_that_slurm_forgot_keeps_its_nodes(api: ApiBench) -> None:
    picture = with_a_lost_node_and_a_job()
    api.show(picture.then(1.0).see(jobs={}))
    assert "n[1-3]" in page(api)


def test_times_are_moments_with_their_age() -> None:
    assert [age(s) for s in (-5, 12, 300, 9000, 400_000)] == ["0 s", "12 s", "5 min", "2 h", "5 d"]
    assert 'datetime="2023-11-14T22:13:20Z"' in ago(1_700_000_000.0, 1_700_000_012.0)
    assert ago(None, 1.0) == "–"


@pytest.mark.parametrize("at", [1e15, -1e15, 2.0**63])
def test_an_absurd_time_from_a_node_costs_no_page(api: ApiBench, at: float) -> None:
    bad = Finding(check="disk", outcome=Outcome.FAILED, text="full", at=at, passed_at=at, good_since=at)
    api.show(a_cluster().agent("n2", findings=(bad,), passed=frozenset({"clock"}), passed_since=(int(at),)))
    assert "full" in page(api, "/node/n2")
    assert "full" in page(api, "/check/disk")
    assert local_time(at).endswith(time.localtime(0).tm_zone)


def test_a_node_says_since_when_each_check_passes_or_fails_and_when_it_last_passed(api: ApiBench) -> None:
    bad = Finding(check="disk", outcome=Outcome.FAILED, text="full", at=T0 - 300, passed_at=T0 - 330)
    coming = Finding(check="memory", outcome=Outcome.FAILED, text="few", at=T0 - 300, passed_at=T0, good_since=T0 - 50)
    shown = {"findings": (bad, coming), "passed": frozenset({"clock"}), "passed_since": (int(T0 - 7300),)}
    api.show(a_cluster().agent("n2", **shown))
    text = re.sub(r"<[^>]+>", "|", page(api, "/node/n2"))
    assert re.search(r"disk\|+info\|+5 min\|+6 min\|? ago\|+full", text), text
    assert re.search(r"passes again for \|*50 s\|*, not long enough yet", text)
    assert re.search(r"clock\|+\n?passed\|+2 h\|+", text)


def test_commands_in_a_sentence_are_set_apart() -> None:
    assert with_code_marked("run `a <b>` now") == "run <code>a &lt;b&gt;</code> now"


def test_a_node_whose_name_needs_quoting_is_linked_as_it_is(api: ApiBench) -> None:
    picture = a_cluster()
    node = picture.seen.nodes[n("n1")]
    odd = n("a b?c")
    api.show(picture.see(nodes=changed({**picture.seen.nodes, odd: node}, odd, lambda old: replace(old, name=odd))))
    assert 'href="/node/a%20b%3Fc"' in page(api)
