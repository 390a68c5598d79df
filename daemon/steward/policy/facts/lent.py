"""Hot spares that are lent to jobs."""

from collections.abc import Set
from dataclasses import replace

from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.resume import Lent
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention

LENT_FOR_S = 60.0
"""How long nodes are lent to a job: by then it has started, and the nodes that it did not take are hot spares again."""


def lent_nodes(draft: Draft) -> frozenset[NodeName]:
    """Return the hot spares that are lent to jobs now."""
    lent = (draft.jobs[id].lent for id in jobs_needing_attention(draft))
    return frozenset(node for one in lent if one is not None for node in one.nodes)


def lend(job: Job, hot: Set[NodeName], count: int, draft: Draft) -> None:
    """Lend the job `count` of the hot spares `hot`; none if there are not enough, or it has some already."""
    mem = draft.jobs[job.id]
    if not count or mem.lent is not None:
        return
    nodes = frozenset(sorted(hot - lent_nodes(draft))[:count])
    if len(nodes) < count:
        return
    draft.jobs[job.id] = replace(mem, lent=Lent(nodes=nodes, at=draft.now, restart=mem.restarts))
    draft.tell("job.hot_spare", f"job {job.id}: hot spares {fold(nodes)} are released for it", job=job.id)
    draft.wake(draft.now + LENT_FOR_S)
