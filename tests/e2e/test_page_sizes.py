"""The pages of large clusters in a real browser: at every width, by keyboard and mouse, and what an update touches. The
head shows a made-up picture; no Slurm runs."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.model.events import Event
from tests.builders.page_site import a_busy_site, told_of
from tests.builders.picture import T0
from tests.e2e.browser import Browser, chromium
from tests.fakes.api_bench import ApiBench
from tests.fakes.page_bench import pages_of, show_as_it_is

PICTURES = os.environ.get("STEWARD_PICTURES", "")
"""A folder for the screenshots of the documentation, where they are to be made again."""
PATHS = (
    "/",
    "/nodes",
    "/node/n3",
    "/jobs",
    "/job/100",
    "/cases",
    "/case/c10",
    "/incidents",
    "/checks",
    "/check/gpu.ecc",
)
MORE = (
    "/incident/agents",
    "/groups",
    "/quotas",
    "/quota/ml",
    "/elastic",
    "/elastic/101",
    "/report",
    "/plan",
    "/events",
)
_STOPS = (
    "[...document.querySelectorAll('a, input, select, button, summary, [tabindex]')].filter((e) => e.tabIndex >= 0)"
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Its clock stands where the picture's does."""
    with chromium(tmp_path) as found:
        found.size(1280, 900)
        source = f"Date.now = () => {(T0 + 20) * 1000}"
        found.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        yield found


@pytest.fixture(params=[1500, 10_000])
def site(request: pytest.FixtureRequest) -> Iterator[ApiBench]:
    with pages_of(a_busy_site(request.param), told_of()) as found:
        yield found


def test_the_first_page_of_a_large_cluster_is_short_and_has_few_tab_stops(site: ApiBench, browser: Browser) -> None:
    browser.open(f"{site.url}/")
    browser.wait("document.querySelectorAll('.cells[tabindex]').length === 3")
    assert browser.value("document.getElementById('wrong').getBoundingClientRect().top") < 300
    assert browser.value("document.getElementById('nodes').getBoundingClientRect().top") < 900, "on the first screen"
    assert browser.value("document.documentElement.scrollHeight") < 2700
    assert browser.value(f"{_STOPS}.length") < 110
    assert browser.value(f"{_STOPS}.filter((e) => e.closest('.cells')).length") == 3, "one for each grid"


def test_a_grid_is_read_by_keys_and_mouse(site: ApiBench, browser: Browser) -> None:
    browser.open(f"{site.url}/")
    browser.wait("document.querySelectorAll('.cells[tabindex]').length === 3")
    browser.value("document.querySelector('[data-title=gpu]').focus()")
    assert browser.value("document.getElementById('at').innerText") == "n1: fine, idle"
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert browser.value("document.getElementById('at').innerText") == "n3: degraded"
    browser.press("ArrowDown")
    box = "getBoundingClientRect()"
    below = f"document.querySelector('.now').{box}.top > document.getElementById('cell-n3').{box}.bottom"
    assert browser.value(below)
    last = browser.value("document.querySelector('[data-title=gpu]').children.length")
    browser.press("End")
    assert browser.value("document.getElementById('at').innerText").startswith(f"n{last}: ")
    browser.value("document.querySelector('[data-title=gpu]').children[1].click()")
    browser.wait("document.querySelector('h1')?.innerText.includes('Node n2')")
    assert browser.noise == []


def test_an_update_touches_only_what_changed_and_keeps_the_place(browser: Browser) -> None:
    picture = a_busy_site(1500)
    with pages_of(picture, told_of()) as site:
        browser.open(f"{site.url}/")
        browser.wait("document.querySelectorAll('.cells[tabindex]').length === 3")
        browser.wait("document.getElementById('live').innerText.startsWith('Live')")
        browser.value("[window.nodes, window.told] = ['grid', 'told'].map((id) => document.getElementById(id)); 0")
        browser.value("document.querySelector('[data-title=gpu]').focus()")
        site.store.add_events([Event(at=T0, kind="node.fine", text="all is well")])
        show_as_it_is(site, picture.after(5.0), number=2)
        browser.wait("document.getElementById('told').innerText.includes('all is well')")
        assert browser.value("document.getElementById('told') !== window.told")
        assert browser.value("document.getElementById('grid') === window.nodes"), "the same nodes: nothing drawn anew"
        show_as_it_is(site, picture.after(10.0).drained("n20", "power"), number=3)
        browser.wait("!!document.getElementById('cell-n20')")
        assert browser.value("document.activeElement.dataset.title") == "gpu"
        assert browser.noise == []


def test_no_page_is_wider_than_the_window(browser: Browser) -> None:
    with pages_of(a_busy_site(1500), told_of()) as site:
        for width in (400, 1280, 2200):
            browser.size(width, 900)
            for path in (*PATHS, *MORE):
                browser.open(f"{site.url}{path}")
                browser.wait("!!document.querySelector('h1')")
                assert browser.value("document.documentElement.scrollWidth <= window.innerWidth"), (width, path)
        assert browser.noise == []


def test_filters_and_the_search_work_without_scripts(browser: Browser) -> None:
    with pages_of(a_busy_site(1500), told_of()) as site:
        browser.scripts(on=False)
        browser.call("Page.navigate", url=f"{site.url}/nodes?state=wrong&place=gpu")
        _await_text(browser, "4 nodes")
        browser.call("Page.navigate", url=f"{site.url}/search?q=c10")
        _await_text(browser, "steward approve c10")


def test_the_pictures_of_the_documentation(browser: Browser) -> None:
    """Made anew where STEWARD_PICTURES names a folder."""
    browser.size(1280, 960)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    with pages_of(a_busy_site(700), told_of()) as site:
        for name, path in {"page": "/", "page-node": "/node/n7", "page-job": "/job/100"}.items():
            for scheme in ("light", "dark") if name == "page" else ("light",):
                browser.prefer(scheme)
                browser.open(f"{site.url}{path}")
                browser.wait("document.getElementById('live').innerText.startsWith('Live')")
                if PICTURES:
                    browser.picture(Path(PICTURES) / (f"{name}-{scheme}.png" if name == "page" else f"{name}.png"))
        assert browser.noise == []


def _await_text(browser: Browser, text: str) -> None:
    for _ in range(100):
        if text in browser.text():
            return
        time.sleep(0.1)
    raise AssertionError(browser.text())
