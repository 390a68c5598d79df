"""Slurm read through pyslurm (in a process of its own, see `native_reader`), written through the commands.

Reading is what is done all the time, and pyslurm does it without starting a program. Writing stays with the commands,
because pyslurm (24.11.0 to 25.11.2) can neither empty a job's exclude list nor name one task of an array: the array's
own id would requeue all of its tasks.
"""

import multiprocessing
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from steward.adapters.process import show
from steward.adapters.slurm import narrow, native_reader
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.config import SlurmConfig
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.words import words_of
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.ports import Retryable

_CONF = "/etc/slurm/slurm.conf"
_ASK_EVERY_S = 60.0
_EXPEDITES = "enable_expedited_requeue"
_HOLDS = frozenset({"limits", "qos"})


class PyslurmSlurm(CommandLineSlurm):
    """SlurmPort. Safe to call from several threads; `close` ends its two reader processes."""

    def __init__(
        self,
        *,
        conf: str = "",
        timeout_s: float = 10.0,
        include: IncludeFile | None = None,
        asker: FitAsker | None = None,
    ) -> None:
        super().__init__(conf=conf, timeout_s=timeout_s, include=include, asker=asker)
        self._node_reader = _Reader(conf, timeout_s)
        self._job_reader = _Reader(conf, timeout_s)
        self._ports: dict[tuple[NodeName, str], int] = {}
        self._gaps = _Gaps(SlurmConfig(conf=Path(conf or _CONF), timeout_s=timeout_s))

    def close(self) -> None:
        self._node_reader.close()
        self._job_reader.close()

    def describe(self) -> str:
        return f"pyslurm reads, the commands of Slurm {self.version().text} write"

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        found: list[Node] = self._node_reader.ask("nodes")
        if not found:
            return self.read_nodes(only)
        if any((node.name, node.address) not in self._ports for node in found):
            self._ports = {(node.name, node.address): node.port for node in self.read_nodes().values()}
        table = {node.name: _with_port(node, self._ports.get((node.name, node.address), 0)) for node in found}
        return narrow.of_nodes(table, only)

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        """By the commands where pyslurm's jobs lack what is needed."""
        if self._gaps.matter():
            return self.read_jobs(only, on)
        found: list[Job] = self._job_reader.ask("jobs")
        return narrow.of_jobs({job.id: job for job in found}, only, on)


class _Gaps:
    """Whether something is needed of jobs that pyslurm (25.11.2) does not tell: that they are expedited (25.11), and
    which TRES they asked for and have. Teams can have quotas only where Slurm holds jobs to limits of QOS; with jobs
    that seem to use nothing, every quota would seem free. A reconfigure may change both: they are asked each minute."""

    def __init__(self, config: SlurmConfig) -> None:
        self._config = config
        self._matter = False
        self._asked: float | None = None

    def matter(self) -> bool:
        """Raises Retryable when slurmctld does not say."""
        now = time.monotonic()
        if self._asked is None or now > self._asked + _ASK_EVERY_S:
            config = self._config.config()
            expedites = _EXPEDITES in words_of(config.get("SlurmctldParameters", ""))
            self._matter = expedites or words_of(config.get("AccountingStorageEnforce", "")) >= _HOLDS
            self._asked = now
        return self._matter


class _Reader:
    """A reader process, which is started when first needed, and again after it hung or died."""

    def __init__(self, conf: str, timeout_s: float) -> None:
        self._conf = conf
        self._timeout_s = timeout_s
        self._asking = threading.Lock()
        self._running: tuple[BaseProcess, Connection] | None = None

    def ask(self, wanted: str) -> list[Any]:
        """Raises Retryable when there is no whole answer within the time limit."""
        with self._asking:
            try:
                return self._ask(wanted)
            except (EOFError, OSError) as error:
                self._stop()
                raise Retryable(f"the pyslurm reader died while it read {wanted}: {error!r}") from error

    def _ask(self, wanted: str) -> list[Any]:
        pipe = self._pipe()
        pipe.send(wanted)
        if not pipe.poll(self._timeout_s):
            self._stop()
            raise Retryable(f"pyslurm did not read {wanted} within {self._timeout_s:g} s: its process was ended")
        answer: list[Any] | str = pipe.recv()
        if isinstance(answer, str):
            self._stop()  # libslurm keeps for ever what it read once: a slurm.conf that has changed since, for one
            raise Retryable(show(answer))
        return answer

    def close(self) -> None:
        with self._asking:
            self._stop()

    def _pipe(self) -> Connection:
        if self._running is None:
            fresh = multiprocessing.get_context("spawn")  # never fork: the head has threads
            ours, theirs = fresh.Pipe()
            process = fresh.Process(target=native_reader.serve, args=(theirs, self._conf), daemon=True)
            process.start()
            theirs.close()
            self._running = (process, ours)
        return self._running[1]

    def _stop(self) -> None:
        if self._running is not None:
            process, pipe = self._running
            self._running = None
            pipe.close()
            process.kill()
            process.join()


def _with_port(node: Node, port: int) -> Node:
    return node if node.port == port else replace(node, port=port)
