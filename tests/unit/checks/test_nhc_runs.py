"""nhc as we start it, with what configurations of sites say: it marks no node, and its word comes back."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from steward.adapters.node.probe import run_program
from steward.checks.check import Facts, Judgement, Past
from steward.checks.known import limits_of
from steward.checks.site import nhc_check
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.probe import Raw, RunProgram
from tests.fakes.nhc import NHC

NOT_THERE = "* || check_file_test -d /not/there\n"


@dataclass(frozen=True)
class Host:
    root: Path

    def __post_init__(self) -> None:
        self._program("nhc", NHC)
        self._program("mark", f'#!/bin/sh\necho "$@" >> {self.root}/marked\n')

    @property
    def marks(self) -> str:
        """Variables by which a site lets nhc mark its node, in its configuration or in the host's settings."""
        return f"NHC_RM=slurm MARK_OFFLINE=1 OFFLINE_NODE={self.root}/mark ONLINE_NODE={self.root}/mark"

    @property
    def is_marked(self) -> bool:
        return (self.root / "marked").exists()

    def settings(self, text: str) -> None:
        (self.root / "settings").mkdir()
        (self.root / "settings/nhc").write_text(text)

    def look(self, conf: str) -> Judgement:
        path = self.root / "a site's nhc.conf"
        path.write_text(f"* || export {self.marks}\n{conf}")
        limits = limits_of({"site": {"nhc": str(path), "timeout_s": 60.0}})
        facts, check = Facts(node=NodeName("n1"), limits=limits), nhc_check(limits)
        program = check.probes(facts)[1]
        assert isinstance(program, RunProgram)
        env = (("STAND_IN_SETTINGS", str(self.root / "settings")),)
        raw = run_program(replace(program, argv=(f"{self.root}/nhc", *program.argv[1:]), env=env))
        return check.verdict((Raw(files={str(path): conf}), raw), facts, Past())

    def _program(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_configuration_that_switches_marking_on_brings_no_node_back(host: Host) -> None:
    assert host.look("* || check_file_test -d /\n").outcome is Outcome.PASSED
    assert not host.is_marked


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param("", id="as it is"),
        pytest.param("* || export SILENT=1\n", id="silent"),
        pytest.param("* || export LOGFILE=\n", id="without a log"),
        pytest.param("* || head -c 200000 /dev/zero\n", id="after more output than is kept"),
        pytest.param("* || export NHC_RM=sge\n", id="for another resource manager"),
    ],
)
def test_what_it_finds_comes_back_and_marks_no_node(host: Host, conf: str) -> None:
    verdict = host.look(conf + NOT_THERE)
    assert (verdict.outcome, verdict.text) == (Outcome.FAILED, "nhc: check_file_test:  -d /not/there returned 1.")
    assert not host.is_marked


def test_the_hosts_settings_count_and_ours_win(host: Host) -> None:
    host.settings(f"SCRATCH=/not/there\nTIMEOUT=1\nCONFFILE=/not/this\nexport {host.marks}\n")
    verdict = host.look("* || check_file_test -d $SCRATCH\n")
    assert verdict.text == "nhc: check_file_test:  -d /not/there returned 1."
    assert not host.is_marked


def test_it_ends_itself_before_we_end_it() -> None:
    limits = limits_of({"site": {"nhc": "/etc/nhc/nhc.conf", "timeout_s": 30.0}})
    program = nhc_check(limits).probes(Facts(node=NodeName("n1"), limits=limits))[1]
    assert isinstance(program, RunProgram)
    assert "TIMEOUT=28" in program.argv
    assert program.timeout_s == 30.0
