"""Steps that a job reports to Steward and does not print."""

import time
from pathlib import Path

import pytest

from steward.rehearse.own_job import OwnJob
from steward.rehearse.rehearsal import Rehearsal, RunSeen
from steward.rehearse.saves import FolderWatch


@pytest.mark.parametrize(("age", "is_taken"), [(1, True), (30, False)])
def test_a_report_from_before_the_run_began_is_the_one_of_the_run_before(
    tmp_path: Path, age: int, is_taken: bool
) -> None:
    told = f"Last reported step: 150 ({age} s ago, on n1)."
    rehearsal = Rehearsal(OwnJob(7), FolderWatch([tmp_path]), 60.0, print, lambda: told)
    run = RunSeen(began=time.monotonic() - 10.0)
    rehearsal.see(run)
    assert (run.signs.first is not None) is is_taken
