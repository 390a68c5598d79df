"""Ranks of a deep check as processes on this machine, each with an agent's socket to tell; no Slurm."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from steward.adapters.node.agentsock import ShimSocket
from steward.adapters.process import Completed, run
from steward.adapters.wire.deep_messages import DeepLine, deep_of
from steward.adapters.wire.shimline import Request
from steward.agent.reception import DeepDesk
from steward.model.deep import DeepReport, Measure
from steward.model.ids import BootId, NodeName
from tests.fakes.agent_parts import FakeHead
from tests.fakes.clock import FakeClock
from tests.fakes.until import comes_true
from tests.fakes.wires import WHO

SMALL = ("--memory-mb", "32", "--disk-mb", "8", "--tcp-mb", "2048")
RUN = "run-1"


@dataclass
class DeepBench:
    """`more` are a node's own arguments; nodes in `absent` are in Slurm's list but do not come."""

    folder: Path
    nodes: Sequence[str]
    kinds: str
    budget_s: float
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    all_more: Sequence[str] = ()
    within: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Words before a node's command line."""
    first_address: str = "127.0.0.1"
    desks: dict[str, DeepDesk] = field(default_factory=dict)

    async def measure(self) -> dict[str, Completed]:
        """Runs all ranks to their end."""
        servers = [asyncio.ensure_future(self._agent(node).run()) for node in self.nodes]
        await self._until_all_listen()
        came = [node for node in self.nodes if node not in self.absent]
        try:
            ended = await asyncio.gather(*(asyncio.to_thread(self._rank, node) for node in came))
        finally:
            for server in servers:
                server.cancel()
            await asyncio.gather(*servers, return_exceptions=True)
        return dict(zip(came, ended, strict=True))

    def report(self, node: str) -> DeepReport:
        (frame,) = self.desks[node].frames()
        return deep_of(frame, NodeName(node))

    def measures(self) -> list[Measure]:
        return [one for node, desk in self.desks.items() if desk.frames() for one in self.report(node).measures]

    def _agent(self, node: str) -> ShimSocket:
        desk = DeepDesk(
            node=NodeName(node),
            incarnation=replace(WHO, boot=BootId("b-1")),
            clock=FakeClock(),
            head=FakeHead(),
            trusted=frozenset({os.geteuid()}),
            path=self.folder / f"deep-{node}.json",
        )
        self.desks[node] = desk

        async def serve(request: Request, uid: int) -> bytes | None:
            assert isinstance(request, DeepLine)
            return await desk.serve(request, uid)

        return ShimSocket(self.folder / f"{node}.sock", serve)

    async def _until_all_listen(self) -> None:
        await comes_true("all listen", lambda: all((self.folder / f"{node}.sock").exists() for node in self.nodes))

    def _rank(self, node: str) -> Completed:
        argv = [
            *self.within.get(node, ()),
            sys.executable,
            "-m",
            "steward.deep",
            "--run",
            f"{RUN}-{self.folder.name}",
            "--kinds",
            self.kinds,
        ]
        argv += ["--budget-s", f"{self.budget_s:g}", "--socket", f"{self.folder}/%n.sock"]
        argv += ["--disk-dir", str(self.folder), *SMALL, *self.all_more, *self.more.get(node, ())]
        env = {
            "SLURM_PROCID": str(list(self.nodes).index(node)),
            "SLURM_NTASKS": str(len(self.nodes)),
            "SLURM_JOB_NODELIST": ",".join(self.nodes),
            "SLURM_LAUNCH_NODE_IPADDR": self.first_address,
            "SLURMD_NODENAME": node,
        }
        return run(argv, timeout_s=3 * self.budget_s + 30.0, env=env, check=False)
