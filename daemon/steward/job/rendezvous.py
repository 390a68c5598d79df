"""torchrun's rendezvous backend `steward`: `torchrun --rdzv-backend=steward`. The only part that imports torch.

The coordinator decides which nodes take part. torchrun restarts its processes, without counting a restart, when nodes
wait to join: so this backend reports a new generation to torchrun as a waiting node. Processes that end while the run
changes its size, or because another node died, did not fail: their result is held until the coordinator's verdict.
"""

import os
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Any

import torch.distributed as dist
from torch.distributed.elastic.agent.server import api as agents
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

from steward.job.elastic_link import IGNORE_SIGNALS, CoordinatorLink, missing, own_address

JOIN_TIMEOUT_S = 86_400
ALONE_S = 60
_patched: list[bool] = []
EXIT_S = 10
"""How long torchrun waits for its other agents once the coordinator has sent the verdict, instead of minutes."""
AGAIN_S = 3.0
"""A second signal later than this ends torchrun; an earlier one belongs to the same preemption."""


def create(parameters: RendezvousParameters) -> RendezvousHandler:
    """Return the handler of one agent. Raises ValueError, with what to do, if the job is not elastic."""
    if name := missing(os.environ):
        raise ValueError(
            f"--rdzv-backend=steward: {name} is not in the environment. "
            "Submit with `sbatch --elastic=SIZES` where Steward runs, or use another backend"
        )
    _patch_torchrun()
    sys.excepthook = _print_in_one_line
    return StewardRendezvous(parameters)


class StewardRendezvous(RendezvousHandler):
    """A rendezvous led by the coordinator. Each generation has a store of its own, on its first node."""

    def __init__(self, parameters: RendezvousParameters) -> None:
        self.address = parameters.local_addr or own_address(os.environ)
        self.timeout_s = parameters.get_as_int("join_timeout", JOIN_TIMEOUT_S) or JOIN_TIMEOUT_S
        self.alone_s = parameters.get_as_int("alone_s", ALONE_S) or ALONE_S
        self.run_id: str = parameters.run_id
        self.link = CoordinatorLink(os.environ)
        self.store: Any = None
        self.held: Any = None
        """The result of processes that ended, held until the coordinator's verdict."""
        self.noticed_at = 0.0
        self.is_shut = False
        if os.environ.get("STEWARD_ELASTIC_ROLE") == "replica":
            for number in (signal.SIGUSR1, signal.SIGTERM):
                signal.signal(number, self.notice)

    def notice(self, number: int, _: FrameType | None) -> None:
        """Handle a replica's signal: give notice that Slurm reclaims its node; end torchrun on a later one."""
        again = self.link.is_reclaimed and time.monotonic() - self.noticed_at > AGAIN_S
        if again or not self.link.is_led:
            raise SignalException(f"torchrun got signal {number}", sigval=signal.Signals(number))
        if not self.link.is_reclaimed:
            self.noticed_at = time.monotonic()
        self.link.notice()

    def get_backend(self) -> str:
        return "steward"

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        self.held = None
        own = dist.TCPStore(self.address, 0, is_master=True, wait_for_workers=False)
        try:
            layout = self.link.wait(self.address, own.port, self.timeout_s, self.alone_s)
        except TimeoutError as error:
            raise RendezvousTimeoutError(f"run {self.link.run}: {error}") from None
        if layout is None:
            print(f"steward: this node leaves run {self.link.run}", file=sys.stderr, flush=True)
            self.shutdown()
            raise SystemExit(0)
        rank, address, port = int(layout["rank"]), str(layout["address"]), int(layout["port"])
        self.store = self._store(own, rank, address, port)
        return RendezvousInfo(
            dist.PrefixStore(f"steward/{layout['generation']}", self.store),
            rank,
            int(layout["world"]),
            RendezvousStoreInfo(address, port),
        )

    def _store(self, own: Any, rank: int, address: str, port: int) -> Any:
        """Return the generation's store: on its first node `own`, on all others a connection to the first node's."""
        # A base without a coordinator has another port, at which its first node opens a new store.
        if rank == 0 and own.port == port:
            return own
        return dist.TCPStore(address, port, is_master=rank == 0, wait_for_workers=False)

    def num_nodes_waiting(self) -> int:
        return int(self.link.restart or self.link.is_unwanted)

    def is_closed(self) -> bool:
        return self.is_shut

    def set_closed(self) -> None:
        self.is_shut = True

    def get_run_id(self) -> str:
        return self.run_id

    def shutdown(self) -> bool:
        if not self.is_shut:
            self.is_shut = True
            self.link.close()
        return True


def _patch_torchrun() -> None:
    """Patch torchrun's agent: the coordinator judges processes that ended, and those of a replica ignore signals."""
    # torchrun asks no rendezvous about processes that ended. Slurm sends its signals to all processes of a preempted
    # job, and those of a replica must save first; so torchrun stops them by SIGKILL.
    if _patched:
        return
    _patched.append(True)
    look, start, stop = (
        LocalElasticAgent._monitor_workers,
        LocalElasticAgent._start_workers,
        LocalElasticAgent._shutdown,
    )

    def monitored(agent: Any, group: Any) -> Any:
        handler = group.spec.rdzv_handler
        if not isinstance(handler, StewardRendezvous):
            return look(agent, group)
        result = handler.held or look(agent, group)
        _restore_signal_handler(handler)
        how = {agents.WorkerState.SUCCEEDED: "done", agents.WorkerState.FAILED: "failed"}.get(result.state)
        if how and handler.link.ended(how) in ("restart", "wait"):
            handler.held = result
            return agents.RunResult(state=agents.WorkerState.HEALTHY)
        if how and handler.link.verdict:
            agent._exit_barrier_timeout = min(agent._exit_barrier_timeout, EXIT_S)
        return result

    def started(agent: Any, group: Any) -> Any:
        spec = group.spec
        if _is_replica(spec.rdzv_handler) and isinstance(spec.entrypoint, str) and spec.entrypoint != IGNORE_SIGNALS[0]:
            spec.entrypoint, spec.args = IGNORE_SIGNALS[0], (*IGNORE_SIGNALS[1:], spec.entrypoint, *spec.args)
        begun = start(agent, group)
        if isinstance(spec.rdzv_handler, StewardRendezvous):
            _restore_signal_handler(spec.rdzv_handler)
        return begun

    def stopped(agent: Any, death_sig: Any = signal.SIGTERM, *more: Any, **named: Any) -> None:
        ignores_signals = _is_replica(agent._worker_group.spec.rdzv_handler)
        stop(agent, signal.SIGKILL if ignores_signals else death_sig, *more, **named)

    LocalElasticAgent._monitor_workers = monitored
    LocalElasticAgent._start_workers = started
    LocalElasticAgent._shutdown = stopped


def _is_replica(handler: object) -> bool:
    return isinstance(handler, StewardRendezvous) and handler.link.hello["role"] == "replica"


def _restore_signal_handler(handler: StewardRendezvous) -> None:
    """Set a replica's SIGTERM handler again, which torchrun replaces: the first SIGTERM only gives notice."""
    if _is_replica(handler) and not handler.link.is_reclaimed and signal.getsignal(signal.SIGTERM) != handler.notice:
        signal.signal(signal.SIGTERM, handler.notice)


def _print_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line instead of a traceback if a signal ended torchrun (scancel, a time limit)."""
    if isinstance(error, SignalException):
        name = signal.Signals(error.sigval).name
        print(f"steward: torchrun ends, stopped by {name}", file=sys.stderr, flush=True)
    else:
        sys.__excepthook__(kind, error, trace)
