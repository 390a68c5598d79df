"""A site's own checks: what is broken in them says nothing of the node, what they say is done, and they run as they
are."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.findings import bad, why_unknown
from tests.e2e.health_bed import NHC_CONF, NHC_GOOD
from tests.e2e.on_node import has_own_machines, on_node, put_site_check, site_checks
from tests.e2e.story import Story
from tests.fakes.nhc import NHC

REPAIR_S = 60.0
NAP = str(80_000 + os.getpid() % 10_000)
"""Seconds that nothing else on the machine sleeps for, nor another run of these tests."""

BROKEN = {
    "n1": ("crash", "#!/bin/sh\nkill -SEGV $$\n", "exit status -11"),
    "n2": ("hang", f"#!/bin/sh\nsleep {NAP} &\nsleep {NAP}\n", "no end within"),
    "n3": ("garbage", "#!/bin/sh\nhead -c 4096 /dev/urandom\nexit 77\n", "exit status 77"),
    "n4": ("flood", "#!/bin/sh\nhead -c 10485760 /dev/zero | tr '\\0' x\nexit 2\n", "more than 65536 bytes"),
}
"""Node -> name and text of a check that is broken, and what is said of it (one of these)."""

CONTRACT = """#!/bin/bash
# A check of the community's framework, as it is.
set -u
results="${HC_RESULTS_DIR:?}/scratch-${HC_TIMESTAMP:?}.log"
echo "params: ${HC_TEST_PARAMS:-none}" >"$results"
echo "HEALTH_CHECK_RESULT:otherhost:Passed:none:what another host found"
echo "HEALTH_CHECK_RESULT:$SLURMD_OR_HOST:Failed:replace:scratch lost two disks (${HC_TEST_PARAMS})"
exit 1
"""


@pytest.fixture(scope="module")
def hurt_at(ward: Story) -> Iterator[float]:
    began = time.time()
    for node, (name, text, _) in BROKEN.items():
        put_site_check(ward.bed, node, name, text)
    put_site_check(ward.bed, "n5", "scratch", CONTRACT.replace("$SLURMD_OR_HOST", "n5"))
    yield began
    for node, (name, _, _) in BROKEN.items():
        (site_checks(ward.bed, node) / name).unlink()


def says(story: Story, node: str, name: str, words: str) -> bool:
    """Whether the head knows that the check is unknown, and why."""
    return re.search(words, why_unknown(story, node, f"site.{name}")) is not None


def test_a_site_check_that_says_replace_has_its_node_replaced(ward: Story, hurt_at: float) -> None:
    case = ward.wait_case("n5", "closed", REPAIR_S, since=hurt_at)
    assert (case["check"], case["rung"]) == ("site.scratch", "replace")
    assert "scratch lost two disks (-v /scratch)" in str(case["why"])
    ward.wait("it takes jobs again", lambda: ward.node_state("n5") == "IDLE")


@pytest.mark.parametrize("node", BROKEN)
def test_a_site_check_that_is_broken_itself_is_unknown_and_touches_nothing(
    ward: Story, hurt_at: float, node: str
) -> None:
    name, _, words = BROKEN[node]
    ward.wait(f"{name} is unknown", lambda: says(ward, node, name, words))
    ward.wait_case("n5", "closed", REPAIR_S, since=hurt_at)
    assert bad(ward, node) == {}
    assert ward.cases(node, since=hurt_at) == []
    assert ward.node_state(node) == "IDLE"


def test_what_a_hung_check_started_is_ended_with_it(ward: Story, hurt_at: float) -> None:
    ward.wait("it was ended once", lambda: says(ward, "n2", *BROKEN["n2"][::2]))
    (site_checks(ward.bed, "n2") / "hang").write_text("#!/bin/sh\nexit 0\n")
    ward.wait("nothing of it is left", lambda: not sleepers(ward), 10.0)


def sleepers(story: Story) -> str:
    script = f"grep -lz -x {NAP} /proc/[0-9]*/cmdline 2>/dev/null || true"
    return on_node(story.bed, "n2", "sh", "-c", script)


def test_an_nhc_configuration_runs_as_it_is_and_what_it_finds_is_told(ward: Story) -> None:
    """With the site's own nhc where it is installed. On this machine all nodes read the one file."""
    conf = nhc_conf(ward)
    began = time.time()
    write(ward, conf, NHC_GOOD + " * || check_file_test -f /no/such/file\n")
    ward.wait("what nhc found is told", lambda: "/no/such/file" in str(bad(ward, "n6").get("site.nhc")), 30.0)
    write(ward, conf, NHC_GOOD)
    ward.wait("it is good again", lambda: "site.nhc" not in bad(ward, "n6"), 30.0)
    assert ward.cases("n6", since=began) == []
    assert ward.node_state("n6") == "IDLE"


def nhc_conf(story: Story) -> str:
    """Of n6; a container is first given nhc."""
    if not has_own_machines(story.bed):
        return str(story.bed.spec.settings["checks.site"]["nhc"])
    on_node(story.bed, "n6", "mkdir", "-p", str(Path(NHC_CONF).parent))
    write(story, "/usr/local/bin/nhc", NHC)
    on_node(story.bed, "n6", "chmod", "755", "/usr/local/bin/nhc")
    return NHC_CONF


def write(story: Story, path: str, text: str) -> None:
    on_node(story.bed, "n6", "sh", "-c", 'printf %s "$TEXT" >"$0"', path, env={"TEXT": text})
