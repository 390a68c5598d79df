"""The reach of what failed: a fault explains a failure only where the failing thing used that node, at that time.

The rule is in docs/resume.md ("What is evidence") and decision 0011.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from steward.model.ask import Ask
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.job_report import TaskExit
from steward.model.node_names import unfold
from steward.model.resume import Attempt, Decision, JobMemory
from steward.policy.draft import Draft
from steward.policy.job.evidence import Reach

UNSEEN = "a step ran there, and what was wrong was over before it was seen"
CAUSE_S = 60.0
"""A step that failed so long before its batch script did may be why the script ended."""


def of_run(job: Job, mem: JobMemory) -> Reach:
    """That of the whole run: all nodes that it has, those of its other parts too."""
    left = {one.node for one in mem.taken_out}
    return Reach(held=((mem.nodes | job.nodes) - left) | mem.parts, left=mem.taken_out, began=mem.started)


def of_step(ask: Ask, job: Job, mem: JobMemory, failed_at: float, flop: Attempt | None = None) -> Reach:
    """That of a step: its own nodes; the whole run where the shim could not tell them. `flop`: the retry that it was
    and that brought nothing, so that what it was given for still counts.

    A node that left under a step was taken from it, also where it was well again before anybody looked.
    """
    run, used = of_run(job, mem), nodes_of(ask, mem)
    run = replace(run, left=tuple(replace(one, fault=one.fault or UNSEEN) for one in run.left))
    if not used:
        return run
    if flop is not None:
        return run.within(used | flop.culprits)
    return run.within(used, failed_at - ask.age if ask.age is not None else None)


def nodes_of(ask: Ask, mem: JobMemory) -> frozenset[NodeName]:
    """Where a step ran; empty: not known. Of a heterogeneous job the shim knows one part alone."""
    try:
        named = frozenset(map(NodeName, unfold(ask.nodes)))
    except ValueError:
        return frozenset()
    return frozenset() if mem.parts else named & mem.nodes


def of_script(job: Job, mem: JobMemory, failed_at: float, exits: Collection[TaskExit], draft: Draft) -> Reach:
    """That of a batch script: its host, and the nodes of steps that failed shortly before it, since they may be why.

    A step that was run again or that nobody had to ask about is its own matter. Where no step is known, the script's
    tasks are anywhere (`mpirun` over ssh, `torchrun` by pdsh), and where a step failed of which nobody knows the
    nodes, it may have had any: then it is the whole run.
    """
    run = of_run(job, mem)
    asked = [one for one in mem.attempts if one.restart == mem.restarts and one.step]
    if job.batch_host is None or not (asked or _has_steps(job, mem, draft)):
        return run
    failed = [one for one in asked if _may_be_why(one, failed_at)]
    is_known = all(one.nodes for one in failed) and {one.step for one in exits} <= {one.step for one in asked}
    if not is_known:
        return run
    return run.within({job.batch_host, *chain.from_iterable(one.nodes for one in failed)})


def _may_be_why(step: Attempt, failed_at: float) -> bool:
    at = step.failed_at if step.failed_at is not None else step.at
    return step.decision is Decision.STOP and at >= failed_at - CAUSE_S


def _has_steps(job: Job, mem: JobMemory, draft: Draft) -> bool:
    """Whether an agent of the job's nodes told of a step of this run, which asks when it fails."""
    words = draft.overview.opted_in.get(job.id, ())
    return any(word.has_steps and word.restart == mem.restarts for word in words if word.uid == mem.uid)
