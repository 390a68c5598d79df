"""What differs between Slurm versions."""

import pytest

from steward_bed.bed import BedError
from steward_bed.slurm_versions import cgroup_conf, parse


@pytest.mark.parametrize(
    ("told", "plugin"),
    [("slurm-wlm 22.05.8", "cgroup/v1"), ("slurm-wlm 24.11.5", "disabled"), ("slurm 26.05.5", "disabled")],
)
def test_slurmd_is_told_not_to_need_cgroups_in_the_words_of_its_version(told: str, plugin: str) -> None:
    assert cgroup_conf(parse(told)) == f"CgroupPlugin={plugin}\n"


def test_a_version_is_shown_as_slurm_writes_it() -> None:
    assert str(parse("slurm-wlm 22.05.8\n")) == "22.05.8"


def test_what_is_no_version_is_told_as_it_is() -> None:
    with pytest.raises(BedError, match="cannot read a Slurm version in 'command not found'"):
        parse("command not found")


@pytest.mark.parametrize(
    ("told", "wants"), [("slurm-wlm 22.05.8", False), ("slurm 24.11.5", False), ("slurm 26.05.5", True)]
)
def test_a_killed_slurmctld_of_newer_versions_has_to_have_had_time_to_write_its_files(told: str, wants: bool) -> None:
    assert parse(told).wants_all_files is wants
