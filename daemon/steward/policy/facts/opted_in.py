"""Reports of nodes on jobs that opted in."""

from collections.abc import Iterable, Iterator

from steward.model.ask import OptedIn
from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.job import Job, other_parts
from steward.policy.draft import Draft


def nodes_of_parts(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of the other parts of a heterogeneous job."""
    return frozenset(node for other in other_parts(job, draft.seen.jobs) for node in other.nodes)


def words_that_count(words: Iterable[OptedIn], draft: Draft) -> Iterator[OptedIn]:
    """Yield the reports on jobs that opted in, without those from a node that the job does not have."""
    for word in words:
        job = draft.seen.jobs.get(word.job)
        if job is None or not word.told_by or _was_there(word, job, draft):
            yield word
        elif job.is_active and word.restart == job.restarts:
            _tell_foreign(word, job, draft)


def _was_there(word: OptedIn, job: Job, draft: Draft) -> bool:
    """Return whether a reporting node is, or may have been, a node of the job."""
    if job.is_active:
        return bool(word.told_by & nodes_of_run(job, draft))
    # a job that waits again was on nodes that Slurm does not show any more
    return job.restarts > 0 or not job.is_pending


def nodes_of_run(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return all nodes that the job's present run had, and the nodes of its other parts."""
    mem = draft.jobs.get(job.id)
    host = frozenset({job.batch_host} if job.batch_host is not None else ())
    remembered = mem.nodes | mem.parts if mem is not None else frozenset()
    return job.nodes | host | remembered | nodes_of_parts(job, draft)


def _tell_foreign(word: OptedIn, job: Job, draft: Draft) -> None:
    """Warn once a day, for each user and node, of reports on jobs that do not run there."""
    # the user chooses which jobs to name: a warning for each of them could flood the log
    node = min(word.told_by)
    if word.uid not in (0, job.user_id):
        text = (
            f"uid {word.uid} on {node} reports another user's job as its own, such as {word.job}: the report is ignored"
        )
        draft.tell("ask.foreign", text, once=f"foreign:{node}:{word.uid}", level=Level.WARNING, node=node)
        return
    text = f"{node} reports that job {word.job} opted in, but that job does not run there: the report is ignored"
    once = f"elsewhere:{word.job}:{word.restart}:{node}"
    draft.tell("job.elsewhere", text, once=once, level=Level.WARNING, node=node, job=word.job)
