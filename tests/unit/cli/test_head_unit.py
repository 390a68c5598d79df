"""stewardd must run as SlurmUser: agents believe nobody else but root."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from steward.cli.head_unit import let_run_as
from steward.head.choose import own_word
from steward.model.settings import parse
from steward.ports import Permanent


def test_where_slurm_user_is_another_the_unit_is_told(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.geteuid())
    drop_in = tmp_path / "stewardd.service.d" / "user.conf"
    assert let_run_as(me.pw_name, drop_in) == str(drop_in)
    said = drop_in.read_text().splitlines()
    assert f"User={me.pw_name}" in said
    assert f"Group={grp.getgrgid(me.pw_gid).gr_name}" in said


def test_the_units_own_user_needs_no_word(tmp_path: Path) -> None:
    assert let_run_as("slurm", tmp_path / "user.conf") == ""
    assert not (tmp_path / "user.conf").exists()


def test_a_head_that_no_agent_would_believe_says_so_instead_of_waiting_for_agents() -> None:
    settings = parse('[cluster]\nslurm_user = "root"\n', source="f", env={})
    assert own_word(settings, 0) == frozenset({0})
    with pytest.raises(Permanent, match=r"stewardd runs as uid 64030, and agents believe root and cluster.slurm_user"):
        own_word(settings, 64030)
