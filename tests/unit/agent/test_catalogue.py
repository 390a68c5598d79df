"""Site checks as real programs: which run, what they get, and that none of them harms the agent or the node."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from steward.adapters.node.probe import run_program
from steward.agent.catalogue import SiteCatalogue
from steward.checks.check import Check, Facts, Judgement, Past
from steward.checks.known import limits_of
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.probe import RunProgram
from tests.fakes.until import FACT_S, LIMITS_S, until


class Site:
    def __init__(self, folder: Path, said: Mapping[str, object] | None = None) -> None:
        self.dir = folder / "checks.d"
        self.dir.mkdir(mode=0o755, exist_ok=True)
        self.limits = limits_of({"site.timeout_s": FACT_S, **(said or {})})
        self.catalogue = SiteCatalogue(self.limits, self.dir, results_dir=folder / "results")

    def add(self, name: str, body: str) -> Path:
        path = self.dir / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return path

    def checks(self) -> dict[str, Check]:
        return {check.id: check for check in self.catalogue().checks}

    def look(self, body: str) -> Judgement:
        self.add("own", body)
        check = self.checks()["site.own"]
        facts = Facts(node=NodeName("n1"), limits=self.limits)
        programs = [probe for probe in check.probes(facts) if isinstance(probe, RunProgram)]
        return check.verdict(tuple(run_program(one) for one in programs), facts, Past())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, {"site.own.params": "--deep 3"})


def test_a_check_gets_the_variables_of_the_framework(site: Site) -> None:
    verdict = site.look(
        'touch "$HC_RESULTS_DIR/mine" && [[ $HC_TIMESTAMP =~ ^20[0-9]{6}T[0-9]{6}Z$ ]] && '
        'echo "HEALTH_CHECK_RESULT:$(hostname):Passed:none:$HC_TEST_PARAMS"'
    )
    assert (verdict.outcome, verdict.text) == (Outcome.PASSED, "--deep 3")


@pytest.mark.parametrize(
    "body",
    [
        "head -c 10000000 /dev/zero | tr '\\0' x",
        "head -c 10000000 /dev/urandom; exit 2",
        "kill -SEGV $$",
        "exec /none/such",
        "echo HEALTH_CHECK_RESULT:n1:Failed:explode:x; exit 7",
        "printf 'HEALTH_CHECK_RESULT:n1:Failed'; exit 3",
    ],
    ids=["10 MB", "10 MB of noise", "crash", "no program", "no such advice", "half a line"],
)
def test_a_check_that_misbehaves_says_nothing_of_the_node(site: Site, body: str) -> None:
    assert site.look(body).outcome is Outcome.UNKNOWN


def test_a_result_among_noise_is_found(site: Site) -> None:
    verdict = site.look("head -c 3000 /dev/urandom; echo; echo HEALTH_CHECK_RESULT:n1:Failed:reboot:worn out")
    assert (verdict.outcome, verdict.text) == (Outcome.FAILED, "worn out")


def test_a_check_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    for limit_s in LIMITS_S:
        site = Site(tmp_path, {"site.timeout_s": limit_s})
        verdict = site.look(f"sleep 1000 & echo $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/child; wait")
        assert verdict.outcome is Outcome.UNKNOWN
        if (tmp_path / "child").exists():
            break
    child = int((tmp_path / "child").read_text())
    until("its child is ended", lambda: not alive(child))


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_checks_come_and_go_with_their_files(site: Site) -> None:
    site.add("one", "true")
    assert set(site.checks()) == {"site.one"}
    site.add("two", "true")
    (site.dir / "one").unlink()
    assert set(site.checks()) == {"site.two"}


def test_a_check_that_was_changed_has_another_version(site: Site) -> None:
    path = site.add("one", "exit 0")
    before = versions(site)
    assert set(before) == {"site.one"}
    assert len(before["site.one"]) == 8
    assert versions(site) == before
    site.add("one", "exit 1")
    os.utime(path, ns=(1, 1))
    assert versions(site)["site.one"] != before["site.one"]
    path.unlink()
    assert versions(site) == {}


def test_an_nhc_configuration_is_a_check_with_a_version(tmp_path: Path) -> None:
    conf = tmp_path / "nhc.conf"
    conf.write_text("* || check_fs_mount_rw -f /\n")
    site = Site(tmp_path, {"site.nhc": str(conf)})
    assert set(site.checks()) == {"site.nhc"}
    assert len(versions(site)["site.nhc"]) == 8


@pytest.mark.parametrize("mode", [0o666, 0o646])
def test_an_nhc_configuration_that_others_may_write_is_not_run_and_named(tmp_path: Path, mode: int) -> None:
    """nhc is a shell, and what stands in it is run as root."""
    conf = tmp_path / "nhc.conf"
    conf.write_text("* || chmod u+s /tmp/sh\n")
    conf.chmod(mode)
    site = Site(tmp_path, {"site.nhc": str(conf)})
    assert site.checks() == {}
    [refused] = site.catalogue().refused
    assert refused.text == f"not run: {conf}: its file can be written by others (chmod go-w)"


def test_a_site_check_that_is_off_is_not_there(tmp_path: Path) -> None:
    site = Site(tmp_path, {"site.one.mode": "off"})
    site.add("one", "true")
    assert site.checks() == {}
    assert versions(site) == {}


def versions(site: Site) -> dict[str, str]:
    return dict(site.catalogue().versions)
