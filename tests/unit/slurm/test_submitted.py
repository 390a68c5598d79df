"""The option in slurmctld's own record of a job."""

import os
import tracemalloc
from pathlib import Path

import pytest

from steward.adapters.slurm.submitted import SubmittedJobs, mode_in
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.ports import Retryable

BY_OPTION = "SLURM_SPANK__SLURM_SPANK_OPTION_steward_auto_resume"


def record(*variables: str) -> bytes:
    return len(variables).to_bytes(4, "little") + b"".join(each.encode() + b"\0" for each in variables)


def job(id: int, **fields: int) -> Job:
    array = {key: JobId(value) if key == "array_job_id" else value for key, value in fields.items()}
    return Job(id=JobId(id), name="train", state=JobState.RUNNING, user_id=1000, **array)  # type: ignore[arg-type]


def keep(state: Path, id: int, *variables: str) -> None:
    folder = state / f"hash.{id % 10}" / f"job.{id}"
    folder.mkdir(parents=True)
    (folder / "environment").write_bytes(record(*variables))


@pytest.mark.parametrize(
    ("variables", "mode"),
    [
        ((), None),
        (("PATH=/bin", "HOME=/root"), None),
        ((f"{BY_OPTION}=any:3,max=4",), "any:3,max=4"),
        (("SLURM_SPANK_STEWARD_AUTO_RESUME=1",), "1"),
        (("STEWARD_AUTO_RESUME=1", "PATH=/bin"), "1"),
        (("STEWARD_AUTO_RESUME=1", f"{BY_OPTION}=0"), "0"),
        ((f"{BY_OPTION}=forged",), None),
        (("X=\nSTEWARD_AUTO_RESUME=1",), None),
    ],
)
def test_the_option_is_found_wherever_sbatch_left_it(variables: tuple[str, ...], mode: str | None) -> None:
    found = mode_in(record(*variables))
    assert (found.text if found else None) == mode


def test_ten_million_variables_of_a_user_cost_the_head_no_memory() -> None:
    many = record("STEWARD_AUTO_RESUME=1") + b"a=\0" * 2_000_000
    tracemalloc.start()
    try:
        assert mode_in(many) is not None
        assert mode_in(record(*["a=b"] * 9)) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("garbage", [b"", b"\0", b"\0" * 9, b"STEW", bytes(range(64))])
def test_a_record_that_makes_no_sense_says_nothing(garbage: bytes) -> None:
    assert mode_in(garbage) is None


def test_each_job_has_its_own_record_and_an_array_has_one_for_all_its_tasks(tmp_path: Path) -> None:
    keep(tmp_path, 127, "STEWARD_AUTO_RESUME=1")
    keep(tmp_path, 130, "PATH=/bin")
    jobs = SubmittedJobs(lambda: {"StateSaveLocation": str(tmp_path)})
    found = [jobs.mode(each) for each in (job(127), job(130), job(129, array_job_id=127, array_task=2))]
    assert [mode and mode.text for mode in found] == ["1", None, "1"]


def test_the_record_of_an_array_is_read_once_for_all_its_tasks_and_again_when_it_is_another(tmp_path: Path) -> None:
    """One user's thousand tasks, each with 30 MiB to read, would keep the head from all other jobs' records."""
    keep(tmp_path, 127, "STEWARD_AUTO_RESUME=1")
    file, jobs = tmp_path / "hash.7/job.127/environment", SubmittedJobs(lambda: {"StateSaveLocation": str(tmp_path)})
    task, other = (job(id, array_job_id=127, array_task=id) for id in (128, 129))
    assert jobs.mode(task) is not None
    read = file.stat()
    file.write_bytes(record("PATH=/bin"))
    assert jobs.mode(other) is None
    os.utime(file, ns=(read.st_atime_ns, read.st_mtime_ns))
    assert jobs.mode(other) is not None


def test_where_the_record_cannot_be_read_that_is_told_and_slurm_asked_again_where_it_is(tmp_path: Path) -> None:
    config = {"StateSaveLocation": "(null)"}
    jobs = SubmittedJobs(lambda: config)
    with pytest.raises(Retryable, match="StateSaveLocation"):
        jobs.mode(job(7))
    config["StateSaveLocation"] = str(tmp_path / "old")
    with pytest.raises(Retryable, match="record of job 7: No such file"):
        jobs.mode(job(7))
    keep(tmp_path, 7, "STEWARD_AUTO_RESUME=1")
    config["StateSaveLocation"] = str(tmp_path)
    assert jobs.mode(job(7)) is not None


def test_a_value_that_is_longer_than_any_option_is_none_and_hides_no_other() -> None:
    assert mode_in(record("STEWARD_AUTO_RESUME=1" + "," * 5_000_000)) is None
    assert mode_in(record("A=" + "x" * 5_000_000, "SLURM_SPANK_STEWARD_AUTO_RESUME=1")) is not None
    assert mode_in(record("XSTEWARD_AUTO_RESUME=1", "A=STEWARD_AUTO_RESUME=1")) is None
