"""How the runner of a deep check is started on the nodes: by a Slurm job, one task a node (`srun`)."""

from collections.abc import Sequence

from steward.model.deep import DeepKind

PREFIX = "steward-deep-"
"""Reservations, partitions and jobs of deep checks are named so, with the run's id: what is named so is ours."""

RUN_KEY = "STEWARD_DEEP_KEY"
"""The variable in which the tasks of one run find the secret by which they know each other."""


def slurm_name(run: str) -> str:
    """The name of a run's reservation, partition and job."""
    return f"{PREFIX}{run}"


def runner_argv(
    command: Sequence[str], run: str, kinds: frozenset[DeepKind], budget_s: float, socket: str
) -> tuple[str, ...]:
    """The runner's command line. In `socket` the runner replaces `%n` by its node's name (SLURMD_NODENAME).

    Every task knows the others by Slurm's own variables (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST). It tells all
    that it measures to the agent behind `socket`, is over within `budget_s` seconds, and ends with status 0 when it
    could tell, whatever it found.
    """
    words = ",".join(sorted(kind.value for kind in kinds))
    return (*command, "--run", run, "--kinds", words, "--budget-s", f"{budget_s:g}", "--socket", socket)
