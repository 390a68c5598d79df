"""Ports that no two beds share, and faults that are there until they are mended."""

import subprocess
import sys
from pathlib import Path

import pytest

from steward.adapters.process import run
from steward_bed.bed import BedError
from steward_bed.faults import FaultKind
from steward_bed.file_faults import (
    CHECK,
    break_scontrol,
    how_broken,
    mend_scontrol,
    remove_failing_check,
    write_failing_check,
)
from steward_bed.local_setup import free_ports
from tests.fakes.until import FACT_S

_ASKS = """import sys; from steward_bed.local_setup import free_ports
print(*free_ports(3, range(9300, 9400)), flush=True); sys.stdin.read()"""


def test_a_port_is_given_once_while_who_got_it_lives_though_nobody_listens_there_yet() -> None:
    asks = (sys.executable, "-c", _ASKS)
    with subprocess.Popen(asks, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = [int(word) for word in other.stdout.readline().split()]
        assert len(theirs) == 3
        for port in theirs:
            with pytest.raises(BedError, match="no 1 free ports between"):
                free_ports(1, [port])
        other.communicate("")
    assert [free_ports(1, [port]) for port in theirs] == [[port] for port in theirs]
    with pytest.raises(BedError, match="no 1 free ports between"):
        free_ports(1, theirs[:1])


@pytest.mark.parametrize("text", ["it's $(touch trap) `touch trap`", 'quote " and \\n', "two\nlines"])
def test_a_failing_check_says_any_text_as_it_is(tmp_path: Path, text: str) -> None:
    directory = tmp_path / "checks.d"
    directory.mkdir()
    write_failing_check(directory, text)
    said = run([str(directory / CHECK)], timeout_s=FACT_S)
    assert said.text == f"HEALTH_CHECK_RESULT:bed:Failed:replace:{text}\n"
    assert not Path("trap").exists()
    remove_failing_check(directory)
    assert not list(directory.iterdir())


def test_a_broken_scontrol_breaks_the_reading_commands_too_until_it_is_mended(tmp_path: Path) -> None:
    assert how_broken(tmp_path) is None
    break_scontrol(tmp_path, FaultKind.FAIL_SCONTROL)
    assert how_broken(tmp_path) is FaultKind.FAIL_SCONTROL
    for command in ("scontrol", "sinfo", "squeue"):
        done = run([str(tmp_path / command), "show", "nodes"], timeout_s=FACT_S, check=False)
        assert done.returncode == 1
        assert "Unable to contact slurm controller" in done.error_text
    mend_scontrol(tmp_path)
    assert how_broken(tmp_path) is None
    assert not list(tmp_path.iterdir())
