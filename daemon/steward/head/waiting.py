"""Keep agents' reports on jobs, bounded in number: waiting shims, and jobs that opted in."""

import threading
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Generic, TypeVar

from steward.model.ask import Ask, OptedIn
from steward.model.ids import AskId, BootId, JobId, NodeName
from steward.ports import Stale

L = TypeVar("L")
K = TypeVar("K")
E = TypeVar("E")

MAX_ASKS_PER_NODE = 512
MAX_ASKS_OF_USER = 64
"""The most requests of one user on one node, so that other users have room."""
MAX_OPTED = 200_000
MAX_OPTED_OF_NODE = 256
"""As many as an agent keeps."""
MAX_TOLD_BY = 8
"""The most reporting nodes remembered for a job: all nodes of a large job report it."""
MAX_TOLD_LEFT = 1024
"""The most characters on what earlier attempts of a job left on its nodes."""
_OPTED_KEPT_S = 600.0

_ReportKey = tuple[JobId, int, str, int]
"""The key of a report: job, user, mode, run."""
_JobOfUser = tuple[JobId, int]
"""Job and user: a node has one report for each such pair."""


class Asks(Generic[L]):
    """Waiting requests of shims, with the connection of each. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asks: dict[AskId, tuple[Ask, L]] = {}
        self._count: Counter[NodeName | tuple[NodeName, int]] = Counter()

    def all(self) -> tuple[Ask, ...]:
        """Return all waiting requests."""
        with self._lock:
            return tuple(ask for ask, _ in self._asks.values())

    def waits_for(self, job: JobId) -> bool:
        """Return whether a shim of this job waits."""
        with self._lock:
            return any(ask.job == job for ask, _ in self._asks.values())

    def job_of(self, ask: AskId) -> JobId | None:
        """Return the job of a request; None if it does not wait any more."""
        with self._lock:
            known = self._asks.get(ask)
        return known[0].job if known is not None else None

    def add(self, ask: Ask, link: L) -> bool:
        """Add a request, move it to the node's new connection, or complete it; return whether that was done.

        A request is refused if the node, or the user there, has too many already, or if its id is another node's.
        """
        with self._lock:
            known = self._asks.get(ask.id)
            if self._is_full(ask) if known is None else known[0].node != ask.node:
                return False
            if known is None:
                self._count.update((ask.node, (ask.node, ask.uid)))
            self._asks[ask.id] = (_completed(known[0], ask) if known else ask, link)
            return True

    def take(self, ask: AskId) -> L:
        """Remove a request and return its connection. Raises Stale if it does not wait any more."""
        with self._lock:
            if ask not in self._asks:
                raise Stale(f"ask {ask}: its shim does not wait any more")
            return self._remove(ask)

    def withdraw(self, ask: AskId, link: L) -> bool:
        """Remove a request that its shim withdrew; return whether it waited on this connection."""
        with self._lock:
            known = self._asks.get(ask)
            if known is None or known[1] is not link:
                return False
            self._remove(ask)
            return True

    def drop(self, link: L) -> bool:
        """Remove the requests of a connection that ended; return whether there were any. The agent will ask again."""
        with self._lock:
            gone = [ask.id for ask, its in self._asks.values() if its is link]
            for ask in gone:
                self._remove(ask)
            return bool(gone)

    def _is_full(self, ask: Ask) -> bool:
        """Return whether the node, or the request's user on it, has too many requests."""
        of_user = self._count[ask.node, ask.uid]
        return of_user >= MAX_ASKS_OF_USER or self._count[ask.node] >= MAX_ASKS_PER_NODE

    def _remove(self, ask: AskId) -> L:
        """Remove a request and return its connection."""
        one, link = self._asks.pop(ask)
        self._count -= Counter((one.node, (one.node, one.uid)))  # this subtraction drops counts of zero
        return link


def _completed(known: Ask, again: Ask) -> Ask:
    """Return the known request; with the new one's signs of the job's output if those were still being read."""
    if not known.is_reading:
        return known
    return replace(known, signs=again.signs, is_reading=again.is_reading)


class Opted:
    """Reports on jobs that opted in, by the user that claims the job, with the nodes that report each. Thread-safe.

    On a node where a job is not known any user may claim it, and a node may lie: neither may hide the report of the
    job's owner. A node's newer report on a user's job replaces its older one. If a node makes too many reports, it
    loses the oldest one of its user with the most. If the book is full, reports that only one node makes go first: the
    oldest one of the node with the most.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[_ReportKey, OptedIn] = {}
        self._by_only_node: defaultdict[NodeName | None, dict[_ReportKey, None]] = defaultdict(dict)
        """The reports that only one node makes, by that node; under None the reports of several nodes."""
        self._of_node: defaultdict[NodeName, dict[_JobOfUser, _ReportKey]] = defaultdict(dict)
        """The present reports of each node, the oldest first."""

    def all(self) -> tuple[OptedIn, ...]:
        """Return all reports."""
        with self._lock:
            return tuple(self._reports.values())

    def add(self, opted: OptedIn) -> bool:
        """Add a report; return whether it changes anything."""
        with self._lock:
            key = (opted.job, opted.uid, opted.mode.text, opted.restart)
            dropped = [self._drop_other_report(node, key) for node in opted.told_by]
            known = self._reports.get(key)
            if known is not None:
                told_by, has_steps = known.told_by | opted.told_by, known.has_steps or opted.has_steps
                has_detached = known.has_detached or opted.has_detached
                if len(told_by) > MAX_TOLD_BY:
                    told_by = known.told_by
                left = known.left if opted.left in known.left else f"{known.left}; {opted.left}".strip("; ")
                if len(left) > MAX_TOLD_LEFT:
                    left = known.left
                now = replace(
                    known,
                    told_by=told_by,
                    has_steps=has_steps,
                    has_detached=has_detached,
                    left=left,
                    began_in=_began_in(known, opted),
                )
                if now == known:
                    return any(dropped)
                opted = now
            self._put(key, opted)
            for node in opted.told_by:
                self._make_room(node)
            if len(self._reports) > MAX_OPTED:
                fullest = max(self._by_only_node.values(), key=lambda keys: len(keys))
                self._remove(next(iter(fullest)))
            return True

    def _drop_other_report(self, node: NodeName, key: _ReportKey) -> bool:
        """Remove the node's other report on the same job and user; return whether there was one."""
        said = self._of_node[node].get(key[:2]) if node in self._of_node else None
        if said is None or said == key:
            return False
        self._remove_reporter(node, said)
        return True

    def _make_room(self, node: NodeName) -> None:
        """Remove the node's oldest report of its user with the most, if the node makes too many."""
        said = self._of_node[node]
        if len(said) > MAX_OPTED_OF_NODE:
            crowd = Counter(uid for _, uid in said).most_common(1)[0][0]
            self._remove_reporter(node, next(key for (_, uid), key in said.items() if uid == crowd))

    def _remove_reporter(self, node: NodeName, key: _ReportKey) -> None:
        """Remove the node from the reporters of a report."""
        known = self._reports[key]
        if known.told_by == {node}:
            self._remove(key)
        else:
            began_in = frozenset(one for one in known.began_in if one[0] != node)
            self._put(key, replace(known, told_by=known.told_by - {node}, began_in=began_in))

    def forget(self, known: Collection[JobId], now: float) -> None:
        """Drop reports on jobs that Slurm does not know, if they are old."""
        with self._lock:
            for key, opted in list(self._reports.items()):
                if opted.job not in known and opted.at < now - _OPTED_KEPT_S:
                    self._remove(key)

    def _put(self, key: _ReportKey, opted: OptedIn) -> None:
        """Add or replace a report."""
        if key in self._reports:
            self._remove(key)
        self._reports[key] = opted
        self._by_only_node[_only_reporter(opted)][key] = None
        for node in opted.told_by:
            self._of_node[node][key[:2]] = key

    def _remove(self, key: _ReportKey) -> None:
        """Remove a report."""
        opted = self._reports.pop(key)
        _drop(self._by_only_node, _only_reporter(opted), key)
        for node in opted.told_by:
            _drop(self._of_node, node, key[:2])


def _drop(books: dict[K, dict[E, Any]], book: K, entry: E) -> None:
    """Remove an entry, and its book if that is empty then."""
    del books[book][entry]
    if not books[book]:
        del books[book]


def _began_in(known: OptedIn, more: OptedIn) -> frozenset[tuple[NodeName, BootId]]:
    """Return where and in which boot the script began, from both reports; of a node the newer one counts."""
    tellers = {node for node, _ in more.began_in}
    both = more.began_in | {one for one in known.began_in if one[0] not in tellers}
    # a job has one script: more are lies
    return both if len(both) <= MAX_TOLD_BY else known.began_in


def _only_reporter(opted: OptedIn) -> NodeName | None:
    """Return the only node that makes the report; None if several make it."""
    return next(iter(opted.told_by)) if len(opted.told_by) == 1 else None
