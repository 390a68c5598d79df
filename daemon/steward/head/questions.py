"""Agents' questions after the past of resumed jobs, which nodes of the job alone are told.

A run begins a moment before the head has seen on which nodes: until then a question waits, but not longer than who
asked does.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from typing import Protocol

from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import facts_frame
from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts

MAX_WAITING = 10_000
"""A large job asks from all its nodes at once."""
MAX_OF_NODE = 16
_PATIENCE_S = 1.5
_AGAIN_S = 0.02


class Asker(Protocol):
    """A connection of a node's agent."""

    @property
    def node(self) -> NodeName: ...

    def send(self, frame: Frame) -> None: ...


class Questions:
    """Lives in the loop's thread. `nodes_of` says where a job is in the last picture; empty: not known yet."""

    def __init__(
        self,
        *,
        facts: Callable[[JobId], ResumeFacts | None],
        nodes_of: Callable[[JobId], Collection[NodeName]],
        ring: Callable[[], None],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._facts, self._nodes_of, self._ring, self._patience_s = facts, nodes_of, ring, patience_s
        self._waiting: defaultdict[JobId, dict[Asker, float]] = defaultdict(dict)
        self._count: Counter[NodeName] = Counter()
        self._all = 0
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, link: Asker, job: JobId) -> None:
        """Answered at once where the node has the job; with nothing where too many questions wait."""
        if link.node in self._nodes_of(job):
            link.send(facts_frame(job, self._facts(job)))
        elif link in self._waiting.get(job, ()):
            return
        elif self._all >= MAX_WAITING or self._count[link.node] >= MAX_OF_NODE:
            link.send(facts_frame(job, None))
        else:
            self._wait(link, job)

    def drop(self, link: Asker) -> None:
        """The connection ended."""
        for job in [job for job, links in self._waiting.items() if link in links]:
            self._done(link, job)

    def _wait(self, link: Asker, job: JobId) -> None:
        loop = asyncio.get_running_loop()
        self._waiting[job][link] = loop.time() + self._patience_s
        self._count[link.node] += 1
        self._all += 1
        if self._timer is None:
            self._timer = loop.call_later(_AGAIN_S, self._look)
        if len(self._waiting[job]) == 1:
            self._ring()

    def _look(self) -> None:
        """Whether a new picture shows where the jobs are."""
        loop = asyncio.get_running_loop()
        for job, links in list(self._waiting.items()):
            nodes = self._nodes_of(job)
            for link, until in list(links.items()):
                if link.node in nodes or loop.time() >= until:
                    self._done(link, job)
                    link.send(facts_frame(job, self._facts(job) if link.node in nodes else None))
        self._timer = loop.call_later(_AGAIN_S, self._look) if self._waiting else None

    def _done(self, link: Asker, job: JobId) -> None:
        del self._waiting[job][link]
        if not self._waiting[job]:
            del self._waiting[job]
        self._all -= 1
        self._count[link.node] -= 1
        if not self._count[link.node]:
            del self._count[link.node]
