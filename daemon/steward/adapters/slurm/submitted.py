"""The submission of a batch job, from slurmctld's own record: the environment that sbatch sent.

slurmctld keeps it as `<StateSaveLocation>/hash.<last digit>/job.<id>/environment`, from the submission to the job's end
(the same in Slurm 22.05, 24.11 and 26.05), readable for SlurmUser: a count of four bytes, then strings that end with
NUL. Of all these only our own option is kept.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from steward.model.job import Job
from steward.model.resume_mode import ResumeMode
from steward.ports import Retryable

MAX_BYTES = 32 << 20
_COUNT_BYTES = 4
MAX_VALUE = 4096
"""More bytes than any option has."""
VARIABLES = (
    b"SLURM_SPANK__SLURM_SPANK_OPTION_steward_auto_resume",
    b"STEWARD_AUTO_RESUME",
    b"SLURM_SPANK_STEWARD_AUTO_RESUME",
)
"""The variables that may have the option, the strongest first, as in the shim (spank/node.c)."""


class SubmittedJobs:
    """slurmctld's records of submissions. Calls block: use them in a thread. `config` asks Slurm for its settings."""

    def __init__(self, config: Callable[[], Mapping[str, str]]) -> None:
        self._config = config
        self._place: Path | None = None

    def mode(self, job: Job) -> ResumeMode | None:
        """Return the job's mode of resuming; None if it was submitted without the option.

        Raises Retryable if the record cannot be read.
        """
        id = job.array_job_id if job.array_task is not None and job.array_job_id is not None else job.id
        path = self._folder() / f"hash.{id % 10}" / f"job.{id}" / "environment"
        try:
            seen = path.stat()
            return _mode_in_file(path, (seen.st_ino, seen.st_mtime_ns))
        except OSError as error:
            self._place = None  # slurmctld may have another folder by now
            raise Retryable(
                f"cannot read slurmctld's record of job {job.shown_id}: {error.strerror}: {path}"
            ) from error

    def requeues(self) -> bool:
        """Return whether jobs may be requeued by default (JobRequeue). Raises Retryable."""
        return self._config().get("JobRequeue", "1") != "0"

    def _folder(self) -> Path:
        """Return slurmctld's folder. Raises Retryable."""
        place = self._place
        if place is None:
            named = self._config().get("StateSaveLocation", "")
            if not named.startswith("/"):
                raise Retryable("Slurm does not say where it keeps its state (StateSaveLocation)")
            place = self._place = Path(named)
        return place


@lru_cache(maxsize=1024)
def _mode_in_file(path: Path, stamp: tuple[int, int]) -> ResumeMode | None:
    """Return the option in the record; `stamp` tells one state of the file from another. Raises OSError."""
    # all tasks of an array have one record, which its user can make as long as he likes
    with path.open("rb") as file:
        return mode_in(file.read(MAX_BYTES))


def mode_in(record: bytes) -> ResumeMode | None:
    """Return the option in a job's environment; None if it is missing or makes no sense."""
    text = next((text for name in VARIABLES if (text := _value_of(name, record)) is not None), b"")
    try:
        return ResumeMode.parse(text.decode("ascii"))
    except ValueError:
        return None


def _value_of(name: bytes, record: bytes) -> bytes | None:
    """Return the value of a variable, without what is beyond `MAX_VALUE`; None if the environment has no such one."""
    # A user may submit ten million variables, in each of a thousand jobs, and all other threads of the head wait for
    # the search: `find` goes through 32 MiB in 0.02 s, a regular expression in 1.1 s.
    word = name + b"="
    at = _COUNT_BYTES if record.startswith(word, _COUNT_BYTES) else record.find(b"\0" + word) + 1
    if not at:
        return None
    return record[at + len(word) : at + len(word) + MAX_VALUE].partition(b"\0")[0]
