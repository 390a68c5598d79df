"""Find the node to blame for a launch that failed in Slurm itself, and remember it.

Slurm requeues and holds such a job (`launch failed requeued held`), and no longer shows the nodes of the run. If Slurm
drained a node for the failure (`Prolog error`), that node is to blame; else the node is known only if the run had one.
"""

from types import MappingProxyType

from steward.model.ask import Ask
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.mark import first_token
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.slurm_faults import TOLD_WITHIN_S
from steward.policy.guards.run_end import clean_since
from steward.policy.job.evidence import Evidence
from steward.policy.job.failure import LAUNCH_FAILED, was_asked
from steward.policy.slurm_reasons import BATCH_BROKEN, Response, slurms_own
from steward.policy.traits import Trait

WORD_S = 1.0
"""For this long after the clean-up, Slurm's drain of the node may still be missing in the picture."""


def broken_launch(job: Job, mem: JobMemory, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence against nodes that could not start the job, which Slurm holds now; remember such a node."""
    if not job.is_held_by_slurm:
        return ()
    told = _told_by_slurm(job, mem, draft)
    if told or len(mem.nodes) != 1:
        return told
    (node,) = mem.nodes
    _note_hurt(node, job, draft)
    return (Evidence(node=node, text=f"{node}: Slurm could not start the job there", at=draft.now),)


def is_word_awaited(job: Job, mem: JobMemory, draft: Draft) -> bool:
    """Return whether Slurm's drain of a node for the broken launch may still come into the picture."""
    if not job.is_held_by_slurm or broken_launch(job, mem, draft):
        return False
    # nodes and jobs are not read in the same moment
    until = clean_since(job, draft) + WORD_S
    draft.wake(until)
    return draft.now < until


def _told_by_slurm(job: Job, mem: JobMemory, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence against the run's nodes that Slurm drained for a broken launch when it requeued the job."""
    at, found = job.submitted if job.submitted is not None else draft.now, list[Evidence]()
    for node in draft.overview.with_reason(Trait.SLURMS_WORDS):
        row = slurms_own(node, draft.want.slurm_user)
        # if the run's nodes are unknown, any node of its partitions may have been one of them
        is_in_run = node.name in mem.nodes if mem.nodes else bool(node.partitions & set(job.partitions))
        if row is None or node.reason is None or row.response is not Response.LAUNCH or not is_in_run:
            continue
        if abs(node.reason.at - at) <= TOLD_WITHIN_S:
            text = f"{node.name}: Slurm says '{first_token(node.reason.text)}'"
            found.append(Evidence(node=node.name, text=text, at=node.reason.at))
    return tuple(found)


NO_OUTPUT = 53
"""The wait status of a script that never began because slurmstepd could not open its output.

It is ESLURMD_IO_ERROR (4021) in seven bits.
"""
_NEVER_BEGAN = "its script never began"
_NO_OUTPUT_TEXT = f"its output could not be opened there, so {_NEVER_BEGAN}"
_UNBEGUN_TEXT = f"something failed there before it (its output, a TaskProlog, another plugin): {_NEVER_BEGAN}"


def broken_end(job: Job, mem: JobMemory, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence against the node on which the script of an ended job never began.

    The signs are that Slurm drained the node at that time, or that the script's output could not be opened there.
    """
    host, at = job.batch_host, job.ended if job.ended is not None else draft.now
    if host is None:
        return ()
    if is_broken_launch(job, draft):
        text = f"{host}: Slurm says 'batch job complete failure': {_NEVER_BEGAN}"
        return (Evidence(node=host, text=text, at=at, voids_success=True),)
    if job.reason == LAUNCH_FAILED and job.exit_status == NO_OUTPUT and not was_asked(mem):
        return _first_time(host, _NO_OUTPUT_TEXT, job, mem, at, draft)
    return ()


def is_broken_launch(job: Job, draft: Draft) -> bool:
    """Return whether the script of a job that Slurm shows as ended, perhaps as COMPLETED, never began.

    The signs are that Slurm drained the job's node for that at the same time, and that no shim reported the script.
    """
    node = draft.seen.nodes.get(job.batch_host) if job.batch_host is not None else None
    if node is None or node.reason is None or job.ended is None or job.started is None:
        return False
    row = slurms_own(node, draft.want.slurm_user)
    if row is None or row.check != BATCH_BROKEN:
        return False
    is_short, is_then = job.ended - job.started <= TOLD_WITHIN_S, abs(node.reason.at - job.ended) <= TOLD_WITHIN_S
    words = (word for word in draft.seen.opted_in if word.job == job.id and word.told_by)
    return is_short and is_then and not any(word.restart == job.restarts for word in words)


def nodes_that_broke(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that Slurm drained because it could not begin a script there."""
    found = ((node, slurms_own(node, draft.want.slurm_user)) for node in draft.overview.with_reason(Trait.SLURMS_WORDS))
    return frozenset(node.name for node, row in found if row is not None and row.check == BATCH_BROKEN)


def script_never_began(ask: Ask, job: Job, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence, from the shim, that the script never began on the shim's node."""
    return _first_time(ask.node, _UNBEGUN_TEXT, job, mem, failed_at, draft) if ask.script_unbegun else ()


def _first_time(host: NodeName, text: str, job: Job, mem: JobMemory, at: float, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence against the node the first time; empty after that."""
    # the second time the cause is the job's own, or the site's
    if any(_NEVER_BEGAN in fact for attempt in mem.attempts for fact in attempt.why.evidence):
        return ()
    _note_hurt(host, job, draft)
    return (Evidence(node=host, text=f"{host}: {text}", at=at),)


def _note_hurt(node: NodeName, job: Job, draft: Draft) -> None:
    """Remember that the node broke a launch of this job."""
    draft.nodes.note(
        node, failed_launches=MappingProxyType({**draft.nodes.of(node).failed_launches, job.id: draft.now})
    )
