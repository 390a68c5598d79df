"""Nodes of a job that do not answer and that Slurm does not have DOWN yet.

A requeue ends a run on all its nodes. Where one of them is dead already, the job stays COMPLETING there until Slurm has
that node DOWN, so that it cannot start sooner. With GRES it costs more: Slurm 22.05 takes DOWN for a loss of the *next*
run's node then, and never takes back the GRES of that run (`policy/leaks.py`; 4 of 4 such jobs of two nodes). If DOWN
comes first, it requeues the job itself, and nothing is lost count of.
"""

from steward.model.ids import NodeName
from steward.model.job import Job, other_parts
from steward.policy.draft import Draft
from steward.policy.facts.verdict import Standing, standing

DYING_S = 60.0
"""A node that is silent for longer has a slurmd that answers Slurm, or is not to be set DOWN: it is not waited for."""
_DYING = (Standing.LATE, Standing.SILENT, Standing.LOST)


def dying_nodes(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of a running job and its other parts that fell silent and that Slurm does not have DOWN yet."""
    running = [part for part in (job, *other_parts(job, draft.seen.jobs)) if part.is_active]
    return frozenset(name for part in running for name in part.nodes if _is_dying(name, draft))


def _is_dying(name: NodeName, draft: Draft) -> bool:
    """Return whether the node fell silent a short while ago and Slurm does not have it DOWN."""
    node = draft.seen.nodes.get(name)
    if node is None or node.is_down:
        return False
    verdict = standing(node, draft)
    if verdict.standing not in _DYING or verdict.since is None or draft.now >= verdict.since + DYING_S:
        return False
    draft.wake(verdict.since + DYING_S)
    return True
