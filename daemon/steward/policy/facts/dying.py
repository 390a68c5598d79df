"""Nodes of a job that do not answer and that Slurm does not have DOWN yet.

If such a job is requeued and the node goes DOWN later, Slurm 22.05 never takes back the GRES of the job's next run
(`policy/leaks.py`). If the node goes DOWN first, Slurm requeues the job itself, and no GRES leak. Steward sets a lost
node DOWN at once, so a requeue waits only while Steward may not do so: it only reports, is paused, or awaits a second
source.
"""

from steward.model.ids import NodeName
from steward.model.job import Job, other_parts
from steward.policy.draft import Draft
from steward.policy.facts.verdict import Standing, is_awaited, standing

DYING_S = 60.0
"""How long to wait for a silent node to go DOWN. Later, its slurmd still answers Slurm, or it is not to be set DOWN."""
_DYING = (Standing.LATE, Standing.SILENT, Standing.LOST)


def dying_nodes(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of a running job and its other parts that have GRES, fell silent, and are not DOWN in Slurm."""
    running = [part for part in (job, *other_parts(job, draft.seen.jobs)) if part.is_active]
    return dying(frozenset[NodeName]().union(*(part.nodes for part in running)), draft)


def dying(nodes: frozenset[NodeName], draft: Draft) -> frozenset[NodeName]:
    """Return those of the nodes that have GRES, fell silent, and are not DOWN in Slurm."""
    return frozenset(name for name in nodes if _is_dying(name, draft))


def _is_dying(name: NodeName, draft: Draft) -> bool:
    """Return whether the node has GRES, fell silent a short while ago, and Slurm does not have it DOWN."""
    node = draft.seen.nodes.get(name)
    # without GRES nothing can leak, and a requeued job may run again before the node is DOWN
    if node is None or node.is_down or not node.gres:
        return False
    if is_awaited(name, draft):  # a head that has just started cannot know yet
        return True
    verdict = standing(node, draft)
    if verdict.standing not in _DYING or verdict.since is None or draft.now >= verdict.since + DYING_S:
        return False
    draft.wake(verdict.since + DYING_S)
    return True
