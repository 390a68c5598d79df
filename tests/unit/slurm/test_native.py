"""What is read by pyslurm, with a stand-in for it in the reader's own process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters.slurm.native import PyslurmSlurm
from steward.model.ids import JobId
from steward.ports import Retryable

PYSLURM = """
import os
from types import SimpleNamespace

with open(os.environ["SLURM_CONF"]) as file:
    CONF = file.read()  # once: as libslurm

class _Job(SimpleNamespace):
    def __getattr__(self, name):
        return None

class Jobs:
    @staticmethod
    def load():
        if "stale" in CONF:
            raise RuntimeError("Unable to contact slurm controller")
        reason = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
        return {7: _Job(id=7, state="PENDING", state_reason=reason, user_id=0)}

Nodes = Jobs
"""


RECORDING = Path(__file__).parents[2] / "recordings/24.11.5/jobs.stdout"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PyslurmSlurm]:
    """slurm.conf and what slurmctld says of its parameters lie in `tmp_path`."""
    (tmp_path / "pyslurm.py").write_text(PYSLURM)
    (tmp_path / "slurm.conf").write_text("good")
    (tmp_path / "parameters").write_text("SlurmctldParameters     = enable_configless\n")
    script = tmp_path / "scontrol"
    script.write_text(
        f"""#!/bin/sh
case "$*" in
    --version) echo "slurm 24.11.5" ;;
    "show config") cat {tmp_path}/parameters ;;
    *"show jobs") cat {RECORDING} ;;
esac
"""
    )
    script.chmod(0o755)
    (tmp_path / "squeue").write_text("#!/bin/sh\necho odd\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    port = PyslurmSlurm(conf=str(tmp_path / "slurm.conf"), timeout_s=60.0)
    yield port
    port.close()


def test_a_job_that_waits_for_nodes_has_the_commands_word_for_it(slurm: PyslurmSlurm) -> None:
    assert slurm.jobs()[JobId(7)].reason == "Resources"


def test_a_reader_that_met_a_stale_configuration_recovers_with_it(tmp_path: Path, slurm: PyslurmSlurm) -> None:
    """libslurm reads slurm.conf once: only another process reads it again."""
    (tmp_path / "slurm.conf").write_text("stale")
    with pytest.raises(Retryable, match="Unable to contact"):
        slurm.jobs()
    (tmp_path / "slurm.conf").write_text("good")
    assert list(slurm.jobs()) == [7]


def test_where_jobs_may_be_expedited_the_commands_read_them(tmp_path: Path, slurm: PyslurmSlurm) -> None:
    (tmp_path / "parameters").write_text("SlurmctldParameters = enable_configless,enable_expedited_requeue\n")
    assert len(slurm.jobs()) > 1, "those of the commands' answer"


def test_where_slurm_holds_jobs_to_limits_the_commands_read_them(tmp_path: Path, slurm: PyslurmSlurm) -> None:
    """Quotas count what each job asked for, and pyslurm does not tell it."""
    (tmp_path / "parameters").write_text("AccountingStorageEnforce = associations,limits,qos\n")
    assert all("cpu=" in job.requested for job in slurm.jobs().values())


def test_where_slurm_only_knows_accounts_pyslurm_reads_the_jobs(tmp_path: Path, slurm: PyslurmSlurm) -> None:
    (tmp_path / "parameters").write_text("AccountingStorageEnforce = associations\n")
    assert list(slurm.jobs()) == [7]
