"""Measurements of a pair by tools that run at both ends: RDMA writes, and collectives of PyTorch."""

import json
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steward.adapters.process import Completed, Failed, run
from steward.deep.gpu import has_gpu
from steward.deep.workers import TorchRunner

RDMA, GLOO, NCCL = "rdma.bandwidth", "pair.allreduce_cpu", "pair.allreduce_gpu"
START_S = 25.0
"""Seconds for the two ends of a tool to start and to connect, besides the measurement."""
_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools that this node has."""

    torch: TorchRunner = field(default_factory=TorchRunner)
    infiniband: Path = Path("/sys/class/infiniband")
    dev: Path = Path("/dev")

    def here(self) -> frozenset[str]:
        found = set()
        if shutil.which("ib_write_bw") and self.infiniband.is_dir() and any(self.infiniband.iterdir()):
            found.add(RDMA)
        if self.torch.is_there():
            found.add(GLOO)
            if has_gpu(self.dev):
                found.add(NCCL)
        return frozenset(found)

    def serve(self, tool: str, port: int, seconds: float) -> None:
        """Run the passive end of the tool until the other end is done. Raises Failed."""
        if tool == RDMA:
            run(_rdma(port, seconds), timeout_s=seconds + START_S)
        elif tool in (GLOO, NCCL):
            self._collective(tool, 0, "0.0.0.0", port, seconds)

    def drive(self, tool: str, address: str, port: int, seconds: float) -> dict[str, object]:
        """Measure with the tool and return its result for the coordinator."""
        try:
            if tool == RDMA:
                done = _with_retries(lambda: run([*_rdma(port, seconds), address], timeout_s=seconds + START_S))
                return {"check": tool, **rdma_found(done.text)}
            done = self._collective(tool, 1, address, port, seconds)
            return {"check": tool, **collective_found(done.text)}
        except Failed as error:  # a failure of the tool says little about the link
            return {"check": tool, "outcome": "unknown", "text": str(error)[:150]}

    def _collective(self, tool: str, rank: int, address: str, port: int, seconds: float) -> Completed:
        backend = "nccl" if tool == NCCL else "gloo"
        words = ("allreduce", backend, str(rank), str(port), address, f"{seconds:g}")
        return self.torch.run(*words, timeout_s=seconds + START_S)


def rdma_found(text: str) -> dict[str, object]:
    """Return the average of `ib_write_bw --report_gbits`: the fourth column of the line that begins with the size."""
    for line in reversed(text.splitlines()):
        words = line.split()
        if len(words) >= 4 and words[0].isdigit() and words[1].isdigit():
            return {"value": float(words[3]), "unit": "Gbit/s"}
    return {"outcome": "unknown", "text": "ib_write_bw printed no bandwidth"}


def collective_found(text: str) -> dict[str, object]:
    for line in text.splitlines():
        try:
            result = json.loads(line)
        except ValueError:
            continue
        if isinstance(result, dict) and "value" in result:
            if result.get("wrong"):
                return {"outcome": "failed", "text": f"{result['wrong']} sums were wrong"}
            return {"value": float(result["value"]), "unit": str(result.get("unit", ""))}
    return {"outcome": "unknown", "text": "the collective printed no result"}


def free_port() -> int:
    with socket.create_server(("", 0)) as sock:
        return int(sock.getsockname()[1])


def _rdma(port: int, seconds: float) -> Sequence[str]:
    return ("ib_write_bw", "-F", "--report_gbits", "-D", str(max(1, int(seconds))), "-p", str(port))


def _with_retries(what: Callable[[], Completed]) -> Completed:
    """Run the command; retry a failure within a second, because the other end may not listen yet."""
    for _ in range(_TRIES - 1):
        try:
            return what()
        except Failed as error:
            if error.completed is None or error.completed.seconds > 1.0:
                raise
    return what()
