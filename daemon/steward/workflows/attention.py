"""Choose the nodes and jobs that a turn must read: open work, waiting shims, silent agents. Pure.

The open work also decides how often the head looks. A good guess is enough: a record that was left out is read when an
action is about it (workflows/confirm.py), or by the next sweep.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from steward.model.accounting import QOS_PREFIX
from steward.model.ask import Ask, OptedIn
from steward.model.case import Case
from steward.model.deep import DeepRun, slurm_name
from steward.model.elastic import ElasticRun, RunPhase
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.observed import AgentView, Subject
from steward.model.quota import Wrote
from steward.model.resume import JobMemory
from steward.model.slot import SlotStep
from steward.policy.fact_cache import Index
from steward.policy.facts.forgotten import marked_since, shows_again
from steward.policy.guards.run_end import is_looked_into

_RESTING = (SlotStep.SERVING, SlotStep.WAITING)
"""Steps in which no change of a slot is expected."""
_RESTING_RUN = (RunPhase.RUNNING, RunPhase.BACKOFF, RunPhase.WAITING, RunPhase.ENDED)
"""Phases in which no change of an elastic run is under way."""
_WAITS_LONG_S = 60.0
"""A job that still waits this long after its last nudge waits for other jobs: the sweep shows when it runs."""
_CLEANS_UP_S = 10.0
"""The nodes of an ended run are read for this time, and as long as Slurm says that they clean up."""
_JUST_SILENT_S = 1.0
"""Nothing is done about a silent node until the second witness has answered, or this time has passed."""
_SILENT_S = 60.0
_HURRY_S = 3.0
"""For this time after the loss of a node, its job is probably being brought back."""
_SMALL_RUN = 16
"""All nodes of a run up to this size are read by name; for a larger one that costs as much as a sweep."""
_MANY_SILENT = 32
"""If more agents are silent at once, that is an incident with a common cause, and the sweep shows it."""
_NEW_SILENCE_S = 300.0
_DEEP_AFTER_S = 60.0
_ASKED_S = 60.0

Places = Index[JobId, Job, None]
"""The running and completing jobs of each node."""


def jobs_by_node() -> Places:
    """Return an index of the jobs that run or clean up on each node."""
    # A waiting job may still name the nodes of its last run: those are left out.
    return Index(lambda job: frozenset() if job.is_over or job.is_pending else job.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The facts with which a turn begins.

    `places` follows `jobs`; `job_at` returns when a job was last read (Unix s).
    """

    jobs: Mapping[JobId, Job]
    places: Places
    job_at: Callable[[JobId], float]
    views: Mapping[NodeName, AgentView]
    asks: tuple[Ask, ...]
    opted: tuple[OptedIn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The records that a turn must read.

    - `asked`: a shim waits for an answer about them
    - `open`: work on them is under way
    - `new`: jobs that were reported and not read since, with the time of the report (Unix s)
    - `unseen`: Slurm may have a deep check's job whose number is not known yet
    - `hurried`: a shim waits, or an agent was lost a moment ago, so reads without urgency should wait a few seconds
    - `lost`: when the last of these agents was lost (Unix s; 0: none). Jobs that got its node since the last sweep are
      not known yet
    """

    asked: Subject
    open: Subject
    new: Mapping[JobId, float]
    unseen: bool
    hurried: bool
    lost: float = 0.0


def records_to_read(memory: Memory, known: Known, now: float) -> Attention:
    """Return the records that this turn must read."""
    asked = _with_nodes((ask.job for ask in known.asks), memory, known)
    silent = _silent(known.views, now)
    nodes = {case.node for case in memory.cases.values() if case.is_open and not case.waits_for_person}
    nodes |= {case.stand_in for case in memory.cases.values() if case.is_open and case.stand_in is not None}
    nodes |= {slot.node for slot in memory.slots.values() if slot.step not in _RESTING} | silent
    jobs = {mem.id for mem in memory.jobs.values() if _is_open(mem, now)} | _jobs_on(nodes, memory, known.places)
    jobs |= _elastic_jobs(memory, known.jobs) | _signalled(memory, known.jobs)
    deeps, unseen = _deep_jobs(memory.deeps.values(), known.jobs)
    jobs |= _het_parts(jobs, known.jobs) | deeps
    for id in jobs:
        nodes |= _nodes_of(id, memory, known.jobs, now)
    nodes |= _nodes_of_hit_runs(silent, memory, known)
    new = {one.job: one.at for one in known.opted if _is_new(one, known)}
    lost = max((_just_lost(view, now) for view in known.views.values() if not view.is_heard), default=0.0)
    about = Subject(nodes=frozenset(nodes), jobs=frozenset(jobs))
    hurried = bool(known.asks) or lost > 0.0
    return Attention(asked=asked, open=about, new=new, unseen=unseen, hurried=hurried, lost=lost)


def _with_nodes(ids: Iterable[JobId], memory: Memory, known: Known) -> Subject:
    """Return the jobs with all their parts, and the nodes of their present and last runs."""
    jobs = frozenset(ids)
    jobs |= _het_parts(jobs, known.jobs)
    runs = (known.jobs[id].nodes for id in jobs if id in known.jobs)
    remembered = (memory.jobs[id].nodes | memory.jobs[id].parts for id in jobs if id in memory.jobs)
    return Subject(nodes=frozenset().union(*runs, *remembered), jobs=jobs)


def _is_open(mem: JobMemory, now: float) -> bool:
    """Return whether work for the job, or about it, is under way."""
    if mem.ended is not None:
        return False
    if mem.pending_from is not None:
        return now < max(mem.pending_from, mem.last_nudge) + _WAITS_LONG_S
    is_held = mem.kept is not None and mem.kept.freed is None
    is_raised = mem.raised is not None and not mem.raised.restored
    is_still = mem.hang is not None and not mem.hang.is_settled
    return mem.promised is not None or is_held or is_raised or is_still or mem.lent is not None


def _jobs_on(nodes: set[NodeName], memory: Memory, places: Places) -> set[JobId]:
    """Return the jobs that run or clean up on these nodes, as Slurm shows them and as remembered."""
    if not nodes:
        return set()
    there = {id for node in nodes for id in places.having(node)}
    runs = (mem for mem in memory.jobs.values() if mem.ended is None and mem.pending_from is None)
    return there | {mem.id for mem in runs if not nodes.isdisjoint(mem.nodes)}


def _het_parts(ids: Iterable[JobId], jobs: Mapping[JobId, Job]) -> set[JobId]:
    """Return all parts of the heterogeneous jobs to which these jobs belong."""
    leaders = {job.het_job_id for id in ids if (job := jobs.get(id)) is not None and job.het_job_id is not None}
    return {id for id, job in jobs.items() if job.het_job_id in leaders} if leaders else set()


def _nodes_of(id: JobId, memory: Memory, jobs: Mapping[JobId, Job], now: float) -> frozenset[NodeName]:
    """Return the job's nodes that matter now: those kept for it, and those on which its last run cleans up."""
    mem, job = memory.jobs.get(id), jobs.get(id)
    if mem is None:
        return frozenset()
    kept = mem.kept.nodes if mem.kept is not None and mem.kept.freed is None else frozenset[NodeName]()
    lent = mem.lent.nodes if mem.lent is not None else frozenset[NodeName]()
    cleans_up = job is not None and job.is_completing
    is_recent = mem.pending_from is not None and now < mem.pending_from + _CLEANS_UP_S
    return kept | lent | (mem.nodes | mem.parts if cleans_up or is_recent else frozenset())


def _nodes_of_hit_runs(silent: set[NodeName], memory: Memory, known: Known) -> set[NodeName]:
    """Return all nodes of the small runs on silent nodes: the decision about a run needs each node of it."""
    here = _jobs_on(silent, memory, known.places)
    runs = ((memory.jobs[id], known.jobs.get(id)) for id in here if id in memory.jobs)
    found = (mem.nodes | mem.parts | (job.nodes if job else frozenset()) for mem, job in runs)
    return {node for nodes in found if len(nodes) <= _SMALL_RUN for node in nodes}


def _deep_jobs(runs: Iterable[DeepRun], jobs: Mapping[JobId, Job]) -> tuple[set[JobId], bool]:
    """Return the jobs of deep checks, and whether a submitted one is not in the picture yet."""
    names = {slurm_name(run.token) for run in runs if run.has_nodes}
    if not names:
        return set(), False
    found = {id: job.deep_check for id, job in jobs.items() if job.deep_check in names}
    return set(found), names != set(found.values())


def _elastic_jobs(memory: Memory, jobs: Mapping[JobId, Job]) -> set[JobId]:
    """Return the base and replica jobs of elastic runs that change their size."""
    runs = [run for run in memory.elastic.values() if run.is_open and run.phase not in _RESTING_RUN]
    found = {replica.job for run in runs for replica in run.replicas if replica.job is not None}
    return {id for id in found | {run.id for run in runs} if id in jobs}


def _signalled(memory: Memory, jobs: Mapping[JobId, Job]) -> set[JobId]:
    """Return the jobs that were signalled and are in their grace time before an eviction."""
    # A job that ended in that time is requeued at once, so that its user's scancel still reaches it.
    going = ((id, each.yielding) for id, each in memory.quota_jobs.items())
    return {id for id, eviction in going if eviction is not None and eviction.due is not None and id in jobs}


def _silent(views: Mapping[NodeName, AgentView], now: float) -> set[NodeName]:
    """Return the nodes whose agent was lost a moment ago and about which an action may be due."""
    found = {name for name, view in views.items() if not view.is_heard and _is_settling(view, now)}
    return found if len(found) <= _MANY_SILENT else set()


def _just_lost(view: AgentView, now: float) -> float:
    """Return when the agent was lost, if that was a moment ago; otherwise 0."""
    at = view.lost_at
    return at if at is not None and now < at + _HURRY_S else 0.0


def _is_settling(view: AgentView, now: float) -> bool:
    """Return whether the agent fell silent lately, and the second witness has answered or had its time."""
    since = view.lost_at if view.lost_at is not None else view.last_heard
    if now >= since + _SILENT_S:
        return False
    return now >= since + _JUST_SILENT_S or (view.witness is not None and view.witness.at >= since)


def _is_new(one: OptedIn, known: Known) -> bool:
    """Return whether the job was not read since the report, and its known record is from before the run."""
    if known.job_at(one.job) >= one.at:
        return False
    job = known.jobs.get(one.job)
    return job is None or job.is_pending or job.restarts < one.restart


# Busy: the open work in memory for which the head looks more often, or at more.


def is_busy(memory: Memory, now: float) -> bool:
    """Return whether work is under way for which the head should look more often.

    Such work is an open repair, a slot or elastic run that changes, a deep check, an eviction, a job that comes back or
    whose end is looked into, and many agents that fell silent lately.
    """
    if any(case.is_open and not case.waits_for_person for case in memory.cases.values()):
        return True
    if any(slot.step not in _RESTING for slot in memory.slots.values()):
        return True
    if any(_is_elastic_busy(run, now) for run in memory.elastic.values()):
        return True
    if any(run.is_open for run in memory.deeps.values()) or _is_silence_new(memory, now):
        return True
    if any(job.yielding is not None for job in memory.quota_jobs.values()) or _only_we_take_back(memory.quota_writes):
        return True
    return any(job.pending_from is not None or is_looked_into(job) for job in memory.jobs.values())


def _is_elastic_busy(run: ElasticRun, now: float) -> bool:
    """Return whether the run changes its size, or asked for a replica a moment ago."""
    if not run.is_open:
        return False
    return run.phase not in _RESTING_RUN or any(now < one.asked + _ASKED_S for one in run.replicas if one.job is None)


def _is_silence_new(memory: Memory, now: float) -> bool:
    """Return whether many agents fell silent lately, for which the provider may know a reason."""
    return any(
        one.fate_unknown and one.over is None and one.since > now - _NEW_SILENCE_S for one in memory.incidents.values()
    )


def _only_we_take_back(writes: Mapping[str, Wrote]) -> bool:
    """Return whether quota is lent and only Steward reclaims it; then an owner's job must be seen soon."""
    newest = {key: wrote.values[0] for key, wrote in writes.items() if key.startswith(QOS_PREFIX) and wrote.values}
    is_lent = any("-b/cap:" in key and value not in ("", "0") for key, value in newest.items())
    return is_lent and not any(key.endswith("-g/preempt") and value for key, value in newest.items())


def has_marked(memory: Memory) -> bool:
    """Return whether a node has our mark: slurmctld's last start, read with the partitions, may matter."""
    return any(case.is_open and marked_since(case) is not None for case in memory.cases.values())


def partitions_matter(memory: Memory, now: float) -> bool:
    """Return whether the partitions must be read soon: we keep gates, or slurmctld's last start matters now."""
    return memory.cluster is not None or bool(memory.gates) or is_mark_in_question(memory, now)


def is_mark_in_question(memory: Memory, now: float) -> bool:
    """Return whether a mark may not be on slurmctld's disk yet, is gone, or has come back."""
    return any(_is_in_question(case, now) for case in memory.cases.values())


def _is_in_question(case: Case, now: float) -> bool:
    """Return whether the mark of this case is in question."""
    if not case.is_open:
        return shows_again(case, now)
    return marked_since(case) is not None and (not case.marking.on_disk or case.marking.gone is not None)


def is_reserving(memory: Memory, now: float) -> bool:
    """Return whether reservations of ours exist, or may exist."""
    return any(_is_of_interest(run, now) for run in memory.deeps.values()) or any(
        job.kept is not None or job.lent is not None for job in memory.jobs.values()
    )


def _is_of_interest(run: DeepRun, now: float) -> bool:
    """Return whether the deep check's reservation exists, or may still exist."""
    return run.ended is None or now < run.ended + _DEEP_AFTER_S
