"""Which Slurm this is and where the versions differ. Nothing outside this folder knows a Slurm version.

Differences, each seen on real 22.05.8, 24.11.5 and 26.05.5 (recordings in tests/recordings):

- Reading. 22.05 has `sinfo --json` and `squeue --json` (openapi v0.0.38) and no `scontrol --json`; from 23.02 on
  `scontrol --json show nodes|jobs` is used, because `sinfo --json` there prints groups of nodes instead of nodes.
- Text. squeue's long format (`-O`) has the excluded nodes from 23.02 or later on, not in 22.05; the exit code is a wait
  status in 22.05, `code:signal` later. A state is one word in all of them: from 23.02 on JSON tells more.
- Cores. Asked for every detail, as `--json` does by itself, 24.05 and later name each core of each node of a job, used
  or not: 173 bytes a core, and scontrol's own time and memory with it. `--hide` takes that back, and is itself taken
  back by `--all`: scontrol heeds its options in their order. Of 150 jobs on nodes with 128 cores, in 24.11.5: 4.7 MB,
  0.19 s of processor time and 76 MB of memory with the cores, 1.2 MB, 0.08 s and 29 MB without. Nothing else differs
  (24.11.5, 26.05.5). 22.05 cannot leave them out, and names those that are used.
- One job. 22.05 tells of all only; 23.02's scontrol dies of a job that slurmctld does not hold (its source). Later ones
  then exit with 0, no error and no job. About what was asked for by its id `last_update` is always 0.
- Node lists. Before 23.11 nothing may follow a bracket but a comma (`Invalid node name specified`).
- Numbers. v0.0.38 prints plain ones (null where there is none); later ones `{"set", "infinite", "number"}`.
- Node state. v0.0.38: `state` is the base in lower case, `state_flags` a list; later: one list, the base first.
- Job state. v0.0.38 prints one word, and a flag hides the base: a job that cleans up reads `COMPLETING` whatever it
  will be. The base is then UNKNOWN until that is over. Later ones print a list with both.
- Exit status. v0.0.38: the raw wait status; later: `{"return_code", "signal"}`.
- No controller. 22.05 prints no records and an error in `errors`, 26.05 exits with 1; 24.11's `show jobs` exits with 0,
  no error and no jobs: only its `last_update` of 0 tells.
- After `state=resume` 24.11 keeps the node's old reason; 22.05 and 26.05 clear it. A node in service therefore reads
  as having no reason.
- Resuming a node that is in service: `Invalid node state specified`, from 26.05 `Invalid node state transition`.
"""

import re
from dataclasses import dataclass

from steward.adapters.process import show
from steward.model.ids import JobId
from steward.ports import Permanent

_VERSION = re.compile(r"\b(\d{2})\.(\d{2})(?:\.(\d+))?")
OLDEST = (22, 5)
_SCONTROL_JSON = (23, 2)
_ONE_JOB = (23, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """`text` is the full one (`24.11.5`), `release` what decides about behaviour (`(24, 11)`)."""

    text: str
    release: tuple[int, int]

    @property
    def read_nodes(self) -> tuple[str, ...]:
        if self.release < _SCONTROL_JSON:
            return ("sinfo", "--all", "--json")
        return ("scontrol", "--all", "show", "nodes", "--json")

    @property
    def read_jobs(self) -> tuple[str, ...]:
        """The command that lists all jobs, also those of hidden partitions. The order of its options counts."""
        if self.release < _SCONTROL_JSON:
            return ("squeue", "--all", "--json")
        return ("scontrol", "--json", "--hide", "--all", "show", "jobs")

    def read_job(self, job: JobId) -> tuple[str, ...]:
        """Empty where it cannot be asked for alone."""
        return () if self.release < _ONE_JOB else (*self.read_jobs, str(job))

    @property
    def tells_more_in_json(self) -> bool:
        """A job's state with its flags, and what no text of squeue tells: from where JSON of one job can be had."""
        return self.release >= _SCONTROL_JSON


def parse(text: str) -> Version:
    """From what `scontrol --version` prints (`slurm-wlm 24.11.5`). Raises Permanent for anything too old or unknown."""
    match = _VERSION.search(text)
    if match is None:
        raise Permanent(f"`scontrol --version` says {show(text)!r}: no Slurm version in it")
    found = Version(text=match[0], release=(int(match[1]), int(match[2])))
    if found.release < OLDEST:
        raise Permanent(f"Slurm {found.text} is too old: Steward needs 22.05 or newer")
    return found
