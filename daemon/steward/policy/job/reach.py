"""The reach of a failure: a fault explains it only if the failed step or script used that node at that time.

The rule is in docs/resume.md ("What is evidence") and decision 0011.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from steward.model.ask import Ask, OptedIn
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.job_report import TaskExit
from steward.model.node_names import unfold
from steward.model.resume import Attempt, Decision, JobMemory
from steward.policy.draft import Draft
from steward.policy.job.evidence import Reach

UNSEEN = "a step ran there, and what was wrong was over before it was seen"
CAUSE_S = 60.0
"""A step whose srun ended at most this long before its batch script may be why the script ended."""


def of_run(job: Job, mem: JobMemory) -> Reach:
    """Return the reach of the whole run: all of its nodes, including those of its other heterogeneous parts."""
    left = {one.node for one in mem.taken_out}
    return Reach(held=((mem.nodes | job.nodes) - left) | mem.parts, left=mem.taken_out, began=mem.started)


def of_step(ask: Ask, job: Job, mem: JobMemory, failed_at: float, flop: Attempt | None = None) -> Reach:
    """Return the reach of a step: its own nodes, or the whole run if the shim does not know them.

    If this step was a retry that failed at once, `flop` is that retry: its culprits still count.
    """
    run, used = of_run(job, mem), nodes_of(ask, mem)
    # a node that left during a step was taken from the step, even if the node was sound again before the head looked
    run = replace(run, left=tuple(replace(one, fault=one.fault or UNSEEN) for one in run.left))
    if not used:
        return run
    if flop is not None:
        return run.within(used | flop.culprits)
    return run.within(used, failed_at - ask.age if ask.age is not None else None)


def nodes_of(ask: Ask, mem: JobMemory) -> frozenset[NodeName]:
    """Return the nodes on which a step ran; empty if they are not known."""
    try:
        named = frozenset(map(NodeName, unfold(ask.nodes)))
    except ValueError:
        return frozenset()
    # the shim of a heterogeneous job knows the nodes of only one part
    return frozenset() if mem.parts else named & mem.nodes


def of_script(job: Job, mem: JobMemory, failed_at: float, exits: Collection[TaskExit], draft: Draft) -> Reach:
    """Return the reach of a batch script: its host, and the nodes of steps that failed shortly before it.

    Return the whole run if no step is known, if the nodes of a failed step are not known, or if failed steps do not ask
    (`srun --async`). A step that was retried does not count.
    """
    # without known steps, the script's tasks may be anywhere (`mpirun` over ssh, `torchrun` by pdsh)
    run = of_run(job, mem)
    asked = [one for one in mem.attempts if one.restart == mem.restarts and one.step]
    told = _told_of(job, mem, draft)
    has_steps = asked or any(word.has_steps for word in told)
    if job.batch_host is None or not has_steps or any(word.has_detached for word in told):
        return run
    failed = [one for one in asked if _may_be_why(one, failed_at)]
    is_known = all(one.nodes for one in failed) and {one.step for one in exits} <= {one.step for one in asked}
    if not is_known:
        return run
    return run.within({job.batch_host, *chain.from_iterable(one.nodes for one in failed)})


def _may_be_why(step: Attempt, failed_at: float) -> bool:
    """Return whether the failed step may be why the script ended."""
    # its srun, for which the script waits, ends when it is ruled on
    return step.decision is Decision.STOP and step.at >= failed_at - CAUSE_S


def _told_of(job: Job, mem: JobMemory, draft: Draft) -> list[OptedIn]:
    """Return the reports of this run by its user that the agents sent."""
    words = draft.overview.opted_in.get(job.id, ())
    return [word for word in words if word.uid == mem.uid and word.restart == mem.restarts]
