"""Agents' words on jobs: shims that wait, and jobs that opted in. Both are bounded."""

import threading
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Generic, TypeVar

from steward.model.ask import Ask, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.ports import Stale

L = TypeVar("L")
K = TypeVar("K")
E = TypeVar("E")

MAX_ASKS_PER_NODE = 512
MAX_ASKS_OF_USER = 64
"""On one node: the asks of one user leave room for those of the others."""
MAX_OPTED = 200_000
MAX_OPTED_OF_NODE = 256
"""As many as an agent keeps."""
MAX_TOLD_BY = 8
"""So many nodes are known to have told of a job: all of a large one do."""
MAX_TOLD_LEFT = 1024
"""The most characters on what earlier attempts of a job left on its nodes."""
_OPTED_KEPT_S = 600.0

_Word = tuple[JobId, int, str, int]
"""Job, user, mode, run."""
_Claim = tuple[JobId, int]
"""Job and user: of each a node says one thing at a time."""


class Asks(Generic[L]):
    """Waiting asks and the connection that each waits on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asks: dict[AskId, tuple[Ask, L]] = {}
        self._count: Counter[NodeName | tuple[NodeName, int]] = Counter()

    def all(self) -> tuple[Ask, ...]:
        with self._lock:
            return tuple(ask for ask, _ in self._asks.values())

    def waits_for(self, job: JobId) -> bool:
        """Whether a shim of this job waits."""
        with self._lock:
            return any(ask.job == job for ask, _ in self._asks.values())

    def job_of(self, ask: AskId) -> JobId | None:
        with self._lock:
            known = self._asks.get(ask)
        return known[0].job if known is not None else None

    def add(self, ask: Ask, link: L) -> bool:
        """False when the node, or the user there, has too many already, or another node asks by that id; the same id
        again moves to the node's new connection."""
        with self._lock:
            known = self._asks.get(ask.id)
            if self._is_full(ask) if known is None else known[0].node != ask.node:
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
    """Jobs that opted in, in the words of each user who called it his, with the nodes that told of each. Thread-safe.

    On a node where a job is not known any user may call it his own, and a node may lie: that must not hide its owner's
    word. What a node says of a user's job takes the place of what it said of it before; of a node that says too much,
    the oldest of the user with the most goes. When the book is full, the oldest that only one node told of goes first,
    of the node that told most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: dict[_Word, OptedIn] = {}
        self._shares: defaultdict[NodeName | None, dict[_Word, None]] = defaultdict(dict)
        """The words that each node alone told; None: those that several told."""
        self._says: defaultdict[NodeName, dict[_Claim, _Word]] = defaultdict(dict)
        """What each node says now, the longest known first."""

    def all(self) -> tuple[OptedIn, ...]:
        with self._lock:
            return tuple(self._words.values())

    def add(self, opted: OptedIn) -> bool:
        """False when it says nothing new."""
        with self._lock:
            word = (opted.job, opted.uid, opted.mode.text, opted.restart)
            taken_back = [self._take_back(node, word) for node in opted.told_by]
            known = self._words.get(word)
            if known is not None:
                told_by, has_steps = known.told_by | opted.told_by, known.has_steps or opted.has_steps
                if len(told_by) > MAX_TOLD_BY:
                    told_by = known.told_by
                left = known.left if opted.left in known.left else f"{known.left}; {opted.left}".strip("; ")
                if len(left) > MAX_TOLD_LEFT:
                    left = known.left
                if (told_by, has_steps, left) == (known.told_by, known.has_steps, known.left):
                    return any(taken_back)
                opted = replace(known, told_by=told_by, has_steps=has_steps, left=left)
            self._put(word, opted)
            for node in opted.told_by:
                self._make_room(node)
            if len(self._words) > MAX_OPTED:
                fullest = max(self._shares.values(), key=lambda words: len(words))
                self._remove(next(iter(fullest)))
            return True

    def _take_back(self, node: NodeName, word: _Word) -> bool:
        """Whether the node said another word on the same."""
        said = self._says[node].get(word[:2]) if node in self._says else None
        if said is None or said == word:
            return False
        self._unsay(node, said)
        return True

    def _make_room(self, node: NodeName) -> None:
        said = self._says[node]
        if len(said) > MAX_OPTED_OF_NODE:
            crowd = Counter(uid for _, uid in said).most_common(1)[0][0]
            self._unsay(node, next(word for (_, uid), word in said.items() if uid == crowd))

    def _unsay(self, node: NodeName, word: _Word) -> None:
        known = self._words[word]
        if known.told_by == {node}:
            self._remove(word)
        else:
            self._put(word, replace(known, told_by=known.told_by - {node}))

    def forget(self, known: Collection[JobId], now: float) -> None:
        """Drop what was told a while ago of jobs that Slurm does not know (any more)."""
        with self._lock:
            for word, opted in list(self._words.items()):
                if opted.job not in known and opted.at < now - _OPTED_KEPT_S:
                    self._remove(word)

    def _put(self, word: _Word, opted: OptedIn) -> None:
        if word in self._words:
            self._remove(word)
        self._words[word] = opted
        self._shares[_share(opted)][word] = None
        for node in opted.told_by:
            self._says[node][word[:2]] = word

    def _remove(self, word: _Word) -> None:
        opted = self._words.pop(word)
        _drop(self._shares, _share(opted), word)
        for node in opted.told_by:
            _drop(self._says, node, word[:2])


def _drop(books: dict[K, dict[E, Any]], book: K, entry: E) -> None:
    del books[book][entry]
    if not books[book]:
        del books[book]


def _share(opted: OptedIn) -> NodeName | None:
    return next(iter(opted.told_by)) if len(opted.told_by) == 1 else None
