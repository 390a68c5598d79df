"""Nodes of a job that do not answer, or are about to go, and that Slurm does not have DOWN yet.

Slurm tidies up a requeued job when the job's last node is done with it. If that node goes DOWN instead, Slurm before
23.11.11, 24.05.6 and 24.11.1 never does (`kill_running_job_by_node_name` calls no `batch_requeue_fini`): GRES of the
next run leak (`policy/leaks.py`), and an exclusive job that had a node without GRES is never started again
(`BadConstraints`, where slurm.conf has GresTypes) until slurmctld restarts. If the node goes DOWN first, Slurm requeues
the job itself, and all is well; a requeue before it brings nothing, because a job that cleans up cannot start.

Steward sets a lost node DOWN at once, so a requeue waits only while Steward may not do so: it only reports, is paused,
or awaits a second source.
"""

from steward.model.ids import NodeName
from steward.model.job import Job, other_parts
from steward.policy.draft import Draft
from steward.policy.facts.stops import reclaimed_from
from steward.policy.facts.verdict import Standing, is_awaited, standing

DYING_S = 60.0
"""How long to wait for a silent node to go DOWN. Later, its slurmd still answers Slurm, or it is not to be set DOWN."""
LEAVING_S = 5.0
"""How long to wait for a machine to go that its provider takes away, after a job there ended because of that."""
_DYING = (Standing.LATE, Standing.SILENT, Standing.LOST)


def dying_nodes(job: Job, ended: float | None, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of a running job and its other parts that are going, and that are not DOWN in Slurm.

    `ended` is when its script was found to have ended; None: it did not.
    """
    running = [part for part in (job, *other_parts(job, draft.seen.jobs)) if part.is_active]
    return dying(frozenset[NodeName]().union(*(part.nodes for part in running)), ended, draft)


def dying(nodes: frozenset[NodeName], ended: float | None, draft: Draft) -> frozenset[NodeName]:
    """Return those of the nodes that are going, and that are not DOWN in Slurm; `ended` as in `dying_nodes`."""
    return frozenset(name for name in nodes if _is_dying(name, ended, draft))


def _is_dying(name: NodeName, ended: float | None, draft: Draft) -> bool:
    """Return whether the node fell silent or was reclaimed a short while ago, and Slurm does not have it DOWN."""
    node = draft.seen.nodes.get(name)
    if node is None or node.is_down:
        return False
    if is_awaited(name, draft):  # a head that has just started cannot know yet
        return True
    if ended is not None and draft.now < ended + LEAVING_S and reclaimed_from(name, draft) is not None:
        draft.wake(ended + LEAVING_S)
        return True
    verdict = standing(node, draft)
    if verdict.standing not in _DYING or verdict.since is None or draft.now >= verdict.since + DYING_S:
        return False
    draft.wake(verdict.since + DYING_S)
    return True
