"""`python -m steward.deep`: the runner of a deep check, one task a node. See docs/deep-measures.md."""

import argparse
import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from steward.adapters.process import run
from steward.deep.fabric import Tools
from steward.deep.meeting import Meeting
from steward.deep.pair import TransferPace
from steward.deep.rank import PairLimits, Seat, check_pairs, usual_streams
from steward.deep.stress import StressLimits, check_node
from steward.deep.tell import MeasureMaker, Teller
from steward.deep.workers import Budget, TorchRunner
from steward.model.deep import RUN_KEY, DeepKind
from steward.model.ids import NodeName
from steward.ports import Permanent, PortError

# The rank and node of this task, from Slurm's variables.

_EXPAND_S = 10.0


def seat_of(run_id: str, env: Mapping[str, str]) -> Seat:
    """Return this task's seat in the run; without Slurm's variables, the only seat of a run of one node.

    Raises Permanent or Retryable.
    """
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
    """Return the addresses to try for the first node: that of srun's host, which is the first node, and its name."""
    return tuple(dict.fromkeys(filter(None, (env.get("SLURM_LAUNCH_NODE_IPADDR"), first))))


def _expand(nodes: str) -> list[str]:
    if "[" not in nodes:
        return nodes.split(",")
    return run(["scontrol", "show", "hostnames", nodes], timeout_s=_EXPAND_S).text.split()


_STRESS_SHARE = 0.55
"""The stress check's share of the time if the run has both kinds."""
_MARGIN_S = 1.0
_TOLD, _NOT_TOLD, _WRONG_PLACE = 0, 1, 2


def main(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the deep check and return the exit status, which does not depend on the results.

    0: the agent received all results. 1: it did not. 2: this task does not run on the node of its rank.
    """
    asked = _parser().parse_args(words)
    logging.basicConfig(format="steward-deep: %(message)s", level=logging.INFO)
    budget = Budget.of(asked.budget_s - min(_MARGIN_S, asked.budget_s / 4))
    try:
        seat = seat_of(asked.run, env)
    except PortError as error:
        print(f"steward-deep: {error}", file=sys.stderr)
        return _WRONG_PLACE
    teller = Teller(Path(asked.socket.replace("%n", seat.node)), asked.run, seat.node)
    _measure(asked, seat, teller, budget)
    return _TOLD if teller.progress("done", is_done=True) else _NOT_TOLD


def _measure(options: argparse.Namespace, seat: Seat, teller: Teller, budget: Budget) -> None:
    kinds = options.kinds
    if DeepKind.STRESS in kinds:
        mine = budget.part(_STRESS_SHARE) if DeepKind.CONNECTIVITY in kinds else budget
        check_node(MeasureMaker(seat.node), teller, mine, _stress_limits(options))
    if DeepKind.CONNECTIVITY in kinds:
        limits = PairLimits(
            streams=usual_streams(),
            most_bytes=options.tcp_mb << 20,
            pace=TransferPace(mbps=options.throttle_mbps),
            is_tournament=options.acceptance,
            tools=Tools(torch=TorchRunner(options.torch_python)),
        )
        check_pairs(seat, teller, budget, limits)


def _stress_limits(options: argparse.Namespace) -> StressLimits:
    return StressLimits(
        memory_share=options.memory_share,
        memory_bytes=options.memory_mb << 20,
        disk_folder=options.disk_dir,
        disk_bytes=options.disk_mb << 20,
        torch=TorchRunner(options.torch_python),
        dcgm_level=options.dcgm_level,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m steward.deep", description=__doc__)
    parser.add_argument("--run", required=True, help="the deep check's id")
    parser.add_argument("--kinds", required=True, type=_kinds, help="InstanceStress,InstanceConnectivity")
    parser.add_argument("--budget-s", required=True, type=float, help="seconds after which the deep check ends")
    parser.add_argument("--socket", required=True, help="the agent's socket; %%n is the node's name")
    parser.add_argument("--acceptance", action="store_true", help="all pairs instead of two passes")
    parser.add_argument("--memory-share", type=_share, default=0.5, help="share of the free memory (default 0.5)")
    parser.add_argument("--memory-mb", type=int, default=1 << 30, help="at most so many MiB of memory")
    parser.add_argument("--disk-dir", type=Path, default=Path("/var/tmp"), help="the folder to write a file in")
    parser.add_argument("--disk-mb", type=int, default=1024, help="at most so many MiB in the file (default 1024)")
    parser.add_argument("--tcp-mb", type=int, default=64 << 10, help="at most so many MiB between a pair")
    parser.add_argument("--dcgm-level", type=int, choices=range(5), default=0, help="of `dcgmi diag` (default 0: none)")
    parser.add_argument("--torch-python", default="", help="a Python with PyTorch and Steward (default: this one)")
    parser.add_argument("--throttle-mbps", type=float, help="for tests: limit the speed of this node's transfers")
    return parser


def _kinds(words: str) -> frozenset[DeepKind]:
    return frozenset(DeepKind(word) for word in words.split(","))


def _share(word: str) -> float:
    share = float(word)
    if not 0 < share <= 0.9:
        raise ValueError("a share of memory is above 0 and at most 0.9")
    return share


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
