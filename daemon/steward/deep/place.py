"""Where this task stands, by Slurm's own variables."""

import socket
from collections.abc import Mapping

from steward.adapters.process import run
from steward.deep.meeting import Meeting
from steward.deep.rank import Seat
from steward.model.deep_command import RUN_KEY
from steward.model.ids import NodeName
from steward.ports import Permanent

_EXPAND_S = 10.0


def seat_of(run_id: str, env: Mapping[str, str]) -> Seat:
    """Without Slurm's variables: the only rank of a run of one node. Raises Permanent or Retryable."""
    here = env.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    rank, ranks = int(env.get("SLURM_PROCID", "0")), int(env.get("SLURM_NTASKS", "1"))
    nodes = _expand(env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or here)
    if ranks != len(nodes) or rank >= ranks or nodes[rank] != here:
        raise Permanent(
            f"rank {rank} of {ranks} runs on {here}, of the nodes {','.join(nodes)[:200]}: start one task a node, in "
            "the nodes' order (srun --ntasks-per-node=1 --distribution=block)"
        )
    return Seat(
        rank=rank,
        nodes=tuple(NodeName(node) for node in nodes),
        addresses=_addresses(env, nodes[0]),
        meeting=Meeting(run=run_id, key=env.get(RUN_KEY) or run_id),
    )


def _addresses(env: Mapping[str, str], first: str) -> tuple[str, ...]:
    """Where the first node may be found: by its name, and where srun is, which the job's script started there."""
    return tuple(dict.fromkeys(filter(None, (env.get("SLURM_LAUNCH_NODE_IPADDR"), first))))


def _expand(nodes: str) -> list[str]:
    if "[" not in nodes:
        return nodes.split(",")
    return run(["scontrol", "show", "hostnames", nodes], timeout_s=_EXPAND_S).text.split()
