"""`steward quota setup` and `doctor` on a Slurm that is a folder of scripts."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steward.cli import main
from tests.fakes.reader_lines import scontrol_line

CONFIG = """BOOT_TIME               = 2026-11-01T10:00:00
ClusterName             = hpc
AccountingStorageType   = accounting_storage/slurmdbd
AccountingStorageEnforce = {enforce}
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
PriorityType            = priority/multifactor
PriorityWeightQOS       = 1000
JobRequeue              = 1
"""
SCONTROL = """#!/bin/sh
case "$*" in
    *--version*) echo 'slurm 22.05.8' ;;
    *config*) cat {folder}/config ;;
    *node*) echo '{node}' ;;
    *partitions*) echo 'PartitionName=all AllowAccounts=ALL AllowQos=ALL Nodes=n[1-3] State=UP' ;;
    *assoc_mgr*) printf 'Current Association Manager state\\nQOS Records\\n' ;;
esac
"""
SACCTMGR = """#!/bin/sh
echo "$*" >> {folder}/told
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster that enforces everything and has no team."""
    (tmp_path / "config").write_text(CONFIG.format(enforce="associations,limits,qos"))
    for name, text in (("scontrol", SCONTROL), ("sacctmgr", SACCTMGR)):
        (tmp_path / name).write_text(text.replace("{folder}", str(tmp_path)).replace("{node}", scontrol_line()))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "slurm.conf").touch()
    (tmp_path / "steward.toml").write_text(f'[cluster]\nname = "hpc"\nslurm_conf = "{tmp_path}/slurm.conf"\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("STEWARD_CONFIG", str(tmp_path / "steward.toml"))
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, ["quota", *words])


def edits(slurm: Path) -> list[str]:
    lines = (slurm / "told").read_text().splitlines()
    return [line for line in lines if line.startswith("--immediate")]


def test_setup_prints_every_command_and_runs_none(slurm: Path) -> None:
    told = call("setup", "red")
    assert told.exit_code == 0, told.output
    assert "sacctmgr -i add account red cluster=hpc" in told.output
    assert "sacctmgr -i add qos stw-red-b" in told.output
    assert edits(slurm) == []


def test_where_slurm_enforces_nothing_the_missing_line_is_named_and_nothing_is_half_set_up(slurm: Path) -> None:
    (slurm / "config").write_text(CONFIG.format(enforce="associations"))
    told = call("setup", "red", "--apply")
    assert told.exit_code == 1
    assert "slurm.conf: AccountingStorageEnforce=associations,limits,qos" in told.output
    assert "Nothing was changed" in told.output
    assert edits(slurm) == []


@pytest.mark.parametrize(
    ("team", "why"),
    [("root", "an account of Slurm's own"), ("stw-x", "Steward's own"), ("red;reboot", "must be of a-z")],
)
def test_a_name_that_no_team_can_have_is_refused_before_anything_is_made_or_shown(
    slurm: Path, team: str, why: str
) -> None:
    for words in (["setup", "red", team], ["setup", "red", team, "--apply"], ["doctor", team]):
        told = call(*words)
        assert told.exit_code == 1
        assert why in told.output
        assert "sacctmgr" not in told.output
    assert not (slurm / "told").exists()


def test_a_default_that_slurm_refuses_with_status_0_is_told_and_what_it_takes_is_done(slurm: Path) -> None:
    """sacctmgr's words (22.05.8) where a user has a list of QOS of his own; it refuses all that is in the command."""
    refusal = "These associations don't have access to their default qos.\\n DefQOS = stw-red-g   A = red   U = bob\\n"
    tail = f"""case "$*" in *defaultqos=stw-red-g*) printf "{refusal}" >&2 ;; esac\n"""
    (slurm / "sacctmgr").write_text(SACCTMGR.replace("{folder}", str(slurm)) + tail)
    told = call("setup", "red", "--apply")
    assert told.exit_code == 1
    assert "a user could not use the new default QOS" in told.output
    changes = [line.partition(" set ")[2] for line in edits(slurm) if " set qos+=" in line or " set default" in line]
    assert changes == ["qos+=stw-red-b,stw-red-g", "defaultqos=stw-red-g"]


def test_doctor_says_what_is_bad_and_ends_with_1(slurm: Path) -> None:
    assert call("doctor", "red").exit_code == 0
    (slurm / "config").write_text(CONFIG.format(enforce="none"))
    told = call("doctor", "red", "--json")
    assert told.exit_code == 1
    assert "Slurm does not enforce quotas" in told.output


def test_where_slurm_has_no_accounting_one_line_says_what_to_set_up(slurm: Path) -> None:
    (slurm / "config").write_text("AccountingStorageType   = accounting_storage/none\n")
    told = call("setup", "red", "--apply")
    assert told.exit_code == 1
    assert "AccountingStorageType=accounting_storage/slurmdbd" in told.output
