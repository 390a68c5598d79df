"""The open work in memory for which the head looks more often, or at more. Pure."""

from collections.abc import Mapping

from steward.model.deep import DeepRun
from steward.model.elastic import ElasticRun
from steward.model.memory import Memory
from steward.model.quota import Wrote
from steward.policy.job.leaving import is_looked_into
from steward.policy.quota.names import PREFIX
from steward.workflows.attention import RESTING, RESTING_RUN

_SILENCE_S = 300.0
_DEEP_AFTER_S = 60.0
_ASKED_S = 60.0


def is_busy(memory: Memory, now: float) -> bool:
    """A repair, a slot or a deep check goes on, a job comes back or its end is looked into, or many agents fell silent
    lately."""
    if any(case.is_open and not case.waits_for_person for case in memory.cases.values()):
        return True
    if any(slot.step not in RESTING for slot in memory.slots.values()):
        return True
    if any(_is_elastic_busy(run, now) for run in memory.elastic.values()):
        return True
    if any(run.is_open for run in memory.deeps.values()) or _is_silence_new(memory, now):
        return True
    if any(job.yielding is not None for job in memory.quota_jobs.values()) or _only_we_take_back(memory.quota_writes):
        return True
    return any(job.pending_from is not None or is_looked_into(job) for job in memory.jobs.values())


def _is_elastic_busy(run: ElasticRun, now: float) -> bool:
    """Whether the run changes its size, or a replica was asked for a moment ago."""
    if not run.is_open:
        return False
    return run.phase not in RESTING_RUN or any(now < one.asked + _ASKED_S for one in run.replicas if one.job is None)


def _is_silence_new(memory: Memory, now: float) -> bool:
    """Many agents fell silent lately: the provider may know why."""
    return any(one.waits and one.over is None and one.since > now - _SILENCE_S for one in memory.incidents.values())


def _only_we_take_back(writes: Mapping[str, Wrote]) -> bool:
    """Something is lent, and Slurm does not preempt for its owner: the job that wants it back is to be seen soon."""
    newest = {key: wrote.values[0] for key, wrote in writes.items() if key.startswith(PREFIX) and wrote.values}
    is_lent = any("-b/cap:" in key and value not in ("", "0") for key, value in newest.items())
    return is_lent and not any(key.endswith("-g/preempt") and value for key, value in newest.items())


def has_marked(memory: Memory) -> bool:
    """Whether it matters if slurmctld began anew, which is read with the partitions."""
    return any(case.is_open and case.marked is not None for case in memory.cases.values())


def is_reserving(memory: Memory, now: float) -> bool:
    """Whether reservations of ours are there, or may be."""
    return any(_is_of_interest(run, now) for run in memory.deeps.values()) or any(
        job.kept is not None or job.lent is not None for job in memory.jobs.values()
    )


def _is_of_interest(run: DeepRun, now: float) -> bool:
    """Whether the check's reservation is there, or may still be."""
    return run.ended is None or now < run.ended + _DEEP_AFTER_S
