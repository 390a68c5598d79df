"""Which nodes may speak of a job: those that have it, and the host that its user works at.

A node that is in somebody's hands can say what it likes; of jobs that do not run on it, nothing of that counts.
"""

from collections.abc import Iterable, Iterator

from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.policy.draft import Draft
from steward.policy.job.evidence import nodes_of_parts


def may_ask(ask: Ask, job: Job, draft: Draft) -> bool:
    """A script's failure is told by its batch host, a step's by a node of the job or where an `srun` of the user's may
    be: the host that he submitted from, or one that Slurm has no node of (a login node). Of a run that is over nobody
    can say what matters."""
    if not job.is_active or job.restarts > ask.restart:
        return True
    if ask.kind is AskKind.BATCH:
        return job.batch_host in (None, ask.node)
    return (
        ask.node in _nodes_of(job, draft) or ask.node not in draft.seen.nodes or _is_submit_host(ask.node, job, draft)
    )


def words_that_count(words: Iterable[OptedIn], draft: Draft) -> Iterator[OptedIn]:
    """The words on jobs that opted in, without those that no node of the job said. A job that waits again was on nodes
    that Slurm does not show any more."""
    for word in words:
        job = draft.seen.jobs.get(word.job)
        if job is None or not word.told_by or _was_there(word, job, draft):
            yield word
        elif job.is_active and word.restart == job.restarts:
            _tell_foreign(word, draft)


def _was_there(word: OptedIn, job: Job, draft: Draft) -> bool:
    if job.is_active:
        return bool(word.told_by & _nodes_of(job, draft))
    return job.restarts > 0 or not job.is_pending


def _nodes_of(job: Job, draft: Draft) -> frozenset[NodeName]:
    """All that this run had, those of its other parts too."""
    mem = draft.jobs.get(job.id)
    host = frozenset({job.batch_host} if job.batch_host is not None else ())
    remembered = mem.nodes | mem.parts if mem is not None else frozenset()
    return job.nodes | host | remembered | nodes_of_parts(job, draft)


def _is_submit_host(node: NodeName, job: Job, draft: Draft) -> bool:
    """Slurm 22.05 does not tell the host: of an allocation without a script it may be any."""
    if not job.submit_host:
        return not job.is_batch
    known = draft.seen.nodes.get(node)
    names = {node, known.extra.get("hostname", "") if known is not None else ""}
    return job.submit_host.partition(".")[0] in {name.partition(".")[0] for name in names}


def _tell_foreign(word: OptedIn, draft: Draft) -> None:
    node = min(word.told_by)
    text = f"{node} reports that job {word.job} opted in, but that job does not run there: the report is ignored"
    once = f"elsewhere:{word.job}:{word.restart}:{node}"
    draft.tell("job.elsewhere", text, once=once, level=Level.WARNING, node=node, job=word.job)
