"""What agents have told of jobs: shims that wait, and jobs that opted in. Both bounded."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection
from typing import Generic, TypeVar

from steward.model.ask import Ask, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.ports import Stale

L = TypeVar("L")

MAX_ASKS_PER_NODE = 512
MAX_ASKS_OF_USER = 64
"""On one node: the asks of one user leave room for those of the others."""
MAX_OPTED = 200_000
_OPTED_KEPT_S = 600.0


class Asks(Generic[L]):
    """Waiting asks and the connection that each waits on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asks: dict[AskId, tuple[Ask, L]] = {}
        self._count: Counter[NodeName | tuple[NodeName, int]] = Counter()

    def all(self) -> tuple[Ask, ...]:
        with self._lock:
            return tuple(ask for ask, _ in self._asks.values())

    def add(self, ask: Ask, link: L) -> bool:
        """False when the node, or the user there, has too many already; the same id again moves to the new
        connection."""
        with self._lock:
            known = self._asks.get(ask.id)
            if known is None and self._is_full(ask):
                return False
            if known is None:
                self._count.update((ask.node, (ask.node, ask.uid)))
            self._asks[ask.id] = (known[0] if known else ask, link)
            return True

    def take(self, ask: AskId) -> L:
        """Raises Stale when nobody waits for it any more."""
        with self._lock:
            if ask not in self._asks:
                raise Stale(f"ask {ask}: nobody waits for it any more")
            return self._remove(ask)

    def withdraw(self, ask: AskId, link: L) -> bool:
        with self._lock:
            known = self._asks.get(ask)
            if known is None or known[1] is not link:
                return False
            self._remove(ask)
            return True

    def drop(self, link: L) -> bool:
        """The connection ended: its agent will ask again."""
        with self._lock:
            gone = [ask.id for ask, its in self._asks.values() if its is link]
            for ask in gone:
                self._remove(ask)
            return bool(gone)

    def _is_full(self, ask: Ask) -> bool:
        of_user = self._count[ask.node, ask.uid]
        return of_user >= MAX_ASKS_OF_USER or self._count[ask.node] >= MAX_ASKS_PER_NODE

    def _remove(self, ask: AskId) -> L:
        one, link = self._asks.pop(ask)
        self._count -= Counter((one.node, (one.node, one.uid)))  # what falls to none is kept no more
        return link


class Opted:
    """Jobs that opted in, each as told last, by each user who called it his. Thread-safe.

    On a node where a job is not known any user may call it his own: that must not hide its owner's word."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[tuple[JobId, int], OptedIn] = OrderedDict()

    def all(self) -> tuple[OptedIn, ...]:
        with self._lock:
            return tuple(self._jobs.values())

    def add(self, opted: OptedIn) -> bool:
        """False when it says nothing new."""
        with self._lock:
            key = (opted.job, opted.uid)
            known = self._jobs.get(key)
            if known is not None and known.mode == opted.mode and known.restart >= opted.restart:
                return False
            self._jobs[key] = opted
            self._jobs.move_to_end(key)
            if len(self._jobs) > MAX_OPTED:
                self._jobs.popitem(last=False)
            return True

    def forget(self, known: Collection[JobId], now: float) -> None:
        """Drop what was told a while ago of jobs that Slurm does not know (any more)."""
        with self._lock:
            for key, opted in list(self._jobs.items()):
                if opted.job not in known and opted.at < now - _OPTED_KEPT_S:
                    del self._jobs[key]
