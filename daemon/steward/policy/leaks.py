"""Idle nodes whose GRES Slurm counts as used, though no job is there.

The cause is a fault of Slurm before 23.11.11, 24.05.6 and 24.11.1 (22.05.8: 10 of 10; 24.11.5 and 26.05.5: 0 of 4): a
job with GRES was requeued, and its node goes DOWN while the job still cleans up there. When the job's next run ends,
slurmctld cannot take back its GRES ("dealloc of node ... bad node_offset 0 count is 0").

- One node dies: nothing leaks if DOWN itself requeues the job (0 of 50 jobs of one node, 0 of 40 of two). GRES leak if
  the job is requeued before DOWN (16 of 66 and 7 of 13). See `facts/dying.py`.
- Two nodes of a job die at once: the second goes DOWN during the clean-up. No order of drain, down and requeue avoids
  the leak (tried: requeue before DOWN, drain first, one node after the other, numnodes or gres set anew, hold and
  release).

Only a restart of slurmctld ends the leak (tried without effect: resume, undrain, down and resume, gres=, reconfigure).
"""

from collections.abc import Mapping

from steward.model.ids import NodeName
from steward.model.observed import Observed
from steward.policy.traits import is_idle

CURE = "restart slurmctld: running jobs go on"


def leaks(seen: Observed) -> Mapping[NodeName, str]:
    """Return idle node -> the GRES that Slurm counts as used although no job is there."""
    found = {name: gres for name, gres in seen.gres_used.items() if name in seen.nodes and is_idle(seen.nodes[name])}
    if not found:
        return found
    # suspended jobs leave their node IDLE and keep their GRES
    begun = (job for job in seen.jobs.values() if not job.is_pending)
    there = (job for job in begun if not job.is_over or (job.ended or 0.0) > seen.gres_at)
    busy = frozenset().union(*(job.nodes for job in there))
    return {name: gres for name, gres in found.items() if name not in busy}


def leak_text(name: NodeName, gres: str) -> str:
    what = "no job that asks for them starts there, nor an exclusive one"
    return f"{name}: idle, but Slurm still counts {gres} as used: {what}"
