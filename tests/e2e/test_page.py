"""The pages in a real browser: what happens on the cluster shows without a reload; nothing needs JavaScript."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.browser import Browser, chromium
from tests.e2e.story import Story, task_script


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with chromium(tmp_path) as found:
        found.size(1280, 900)
        yield found


def url(story: Story) -> str:
    return story.bed.env["STEWARD_URL"]


def test_a_node_dies_under_a_job_and_the_open_page_shows_it(story: Story, browser: Browser) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"srun -N2 -n2 bash {task}\n")
    job = story.submit(script, "--auto-resume=1", "-N2", "--job-name=<b>train</b>")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    victim = story.job(job).batch_host

    browser.open(f"{url(story)}/")
    browser.wait("document.querySelectorAll('.cell.fine').length === 6")
    browser.value("window.same = true")
    browser.wait(f"!!document.getElementById('job-{job}')")
    story.bed.run(["scontrol", "update", "nodename=n6", "state=drain", "reason=fan"])
    browser.wait("document.getElementById('cell-n6').className.includes('foreign')")
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)
    story.wait_case(victim, "closed", 60, since=hurt_at)
    browser.wait("document.getElementById('told').textContent.includes('case.closed')")
    browser.wait("document.querySelectorAll('.timeline rect').length > 1")
    story.bed.run(["scontrol", "update", "nodename=n6", "state=resume"])
    browser.wait("document.querySelectorAll('.cell.fine').length === 6")
    (story.dir / "go").touch()
    assert browser.value("window.same"), "the page was loaded again"
    assert "<b>train</b>" in browser.value("document.querySelector('[aria-labelledby=jobs]').innerText")
    browser.open(f"{url(story)}/node/{victim}")
    browser.wait(f"!!document.querySelector('#on a[href=\"/job/{job}\"]') && !!document.querySelector('.lane .lost')")
    browser.value("document.querySelector('#repairs td a').click()")
    browser.wait(f"document.querySelector('h1')?.innerText.includes('of {victim}')")
    browser.wait("document.getElementById('moments')?.innerText.includes('returned')")
    browser.open(f"{url(story)}/job/{job}")
    browser.wait(
        f"!!document.querySelector('#decisions a[href=\"/node/{victim}\"]') && !!document.getElementById('runs')"
    )
    assert browser.noise == []


def test_the_page_works_by_keyboard_in_the_dark_and_without_scripts(story: Story, browser: Browser) -> None:
    browser.open(f"{url(story)}/")
    browser.wait("document.querySelectorAll('.cell').length === 6")
    browser.press("Tab")
    assert browser.value("document.activeElement.className") == "skip"
    browser.press("Enter")
    for _ in range(30):
        browser.press("Tab")
        if browser.value("document.activeElement.className") == "cells":
            break
    assert browser.value("document.querySelector('.now').id") == "cell-n1"
    browser.press("ArrowRight")
    assert browser.value("document.querySelector('.now').id") == "cell-n2"
    light = browser.value("getComputedStyle(document.body).backgroundColor")
    browser.prefer("dark")
    assert browser.value("getComputedStyle(document.body).backgroundColor") != light
    browser.press("Enter")
    browser.wait("document.querySelector('h1')?.innerText.includes('Node n2')")
    browser.scripts(on=False)
    browser.call("Page.navigate", url=f"{url(story)}/")

    def whole() -> str:
        """It loads itself anew from time to time, and is empty then."""
        text = browser.text()
        return text if "cell-n6" in text else ""

    assert 'http-equiv="refresh"' in str(story.wait("the page is whole without scripts", whole))
    assert browser.noise == []
