"""The status page as a browser gets it: whole without JavaScript, nothing from elsewhere, hostile names harmless."""

import re
from dataclasses import replace

import pytest
import requests

from steward.api.page.view import age, ago
from steward.model.events import Event
from steward.model.health import Severity
from steward.model.setting_types import RepairMode
from tests.builders.api_cluster import an_api_cluster
from tests.builders.picture import Picture, a_cluster, changed, n
from tests.builders.want import but
from tests.fakes.api_bench import ApiBench, an_api
from tests.fakes.until import FACT_S

STEERING = "\x1b[31m\u202e\u2066\u200b\x07\x9b"
"""Control and bidi characters: what they stand before is shown as something else."""
HOSTILE = f"<script>alert(1)</script>\"'&{STEERING}"
PAGES = ("/", "/page/main", "/node/n1", "/job/7", "/page/page.css", "/page/page.js", "/page/icon.svg")


def page(api: ApiBench, path: str = "/") -> str:
    answer = requests.get(api.url + path, timeout=FACT_S)
    assert answer.status_code == 200, answer.text
    return answer.text


def with_a_lost_node_and_a_job() -> Picture:
    return a_cluster().job().opted_in().lost("n2")


def test_the_page_shows_nodes_repairs_jobs_and_what_would_be_done(api: ApiBench) -> None:
    api.show(with_a_lost_node_and_a_job())
    api.store.add_events([Event(at=1_700_000_000.0, kind="node.lost", text="n2 is lost")])
    html = page(api)
    for part in (
        "testing",
        'href="/node/n6"',
        'class="cell lost"',
        'href="/job/7"',
        "5</b> of 6 agents",
        "<b>1</b> open repair<",
        "DownNode",
        "n2 is lost",
    ):
        assert part in html


def test_groups_are_shown(api: ApiBench) -> None:
    api.show_groups(an_api_cluster())
    assert "Groups and gates" in page(api)
    assert "workers" in page(api)


def test_a_head_that_only_reports_says_so_first() -> None:
    bench = ApiBench()
    bench.want = replace(bench.want, repair=but(bench.want.repair, mode=RepairMode.REPORT))
    with an_api(bench) as api:
        html = page(api)
    assert html.index('class="alert warning"') < html.index("<h2")


def test_a_node_and_a_job_have_pages_with_their_explanation(api: ApiBench) -> None:
    api.show(with_a_lost_node_and_a_job())
    assert "second witness" in page(api, "/node/n2")
    assert "resumes are used" in page(api, "/job/7")


def test_what_is_not_there_is_said_in_one_plain_line(api: ApiBench) -> None:
    for path in ("/node/n99", "/job/99", "/job/x", "/page/none.js"):
        answer = requests.get(api.url + path, timeout=FACT_S)
        assert answer.status_code == 404
        assert "text/html" not in answer.headers["content-type"]


def test_before_the_first_look_the_browser_is_asked_to_come_again(api: ApiBench) -> None:
    api.latest = None
    answer = requests.get(f"{api.url}/", timeout=FACT_S)
    assert (answer.status_code, answer.headers["refresh"]) == (503, "5")


def test_hostile_names_are_text(api: ApiBench) -> None:
    picture = with_a_lost_node_and_a_job().change_job(name=HOSTILE)
    picture = picture.failing("n3", Severity.FATAL, text=HOSTILE).drained("n4", HOSTILE)
    api.show(picture)
    api.store.add_events([Event(at=1.0, kind="x", text=HOSTILE)])
    for path in ("/", "/job/7", "/node/n3", "/node/n4"):
        html = page(api, path)
        assert "<script>alert" not in html
        assert "alert(1)" in html
        assert not [char for char in html if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize("path", PAGES)
def test_nothing_comes_from_elsewhere_and_nothing_is_inline(api: ApiBench, path: str) -> None:
    api.show(with_a_lost_node_and_a_job())
    answer = requests.get(api.url + path, timeout=FACT_S)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", answer.text) == []
    if path.startswith("/page/page") or path.endswith("svg"):
        return
    assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=", answer.text) == []


def test_of_very_many_nodes_only_those_that_are_not_fine_have_a_cell(api: ApiBench) -> None:
    api.show(a_cluster(1600).lost("n7"))
    html = page(api)
    assert html.count('class="cell') == 1
    assert "n[1-6,8-1600]" in html


def test_the_page_is_made_once_for_all_who_look(api: ApiBench) -> None:
    first = page(api, "/page/main")
    api.show(with_a_lost_node_and_a_job())
    assert page(api, "/page/main") != first


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


def test_a_node_whose_name_needs_quoting_is_linked_as_it_is(api: ApiBench) -> None:
    picture = a_cluster()
    node = picture.seen.nodes[n("n1")]
    odd = n("a b?c")
    api.show(picture.see(nodes=changed({**picture.seen.nodes, odd: node}, odd, lambda old: replace(old, name=odd))))
    assert 'href="/node/a%20b%3Fc"' in page(api)
