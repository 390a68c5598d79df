"""Keep the data that all pages of one moment share: the snapshot, the verdict on each node, and pages already made.

The filters and the page number of an address are read here, too.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from steward.api.source import Source
from steward.api.views import natural_sort_key
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.text import one_line
from steward.policy.draft import Draft
from steward.policy.fact_cache import FactCache
from steward.views.node_verdict import NodeVerdict, node_verdicts
from steward.workflows.snapshot import Snapshot

T = TypeVar("T")
_LEAST_S = 2.0
_LARGE = 1000
"""In a cluster of more nodes a new look is made every `_LEAST_S` at most, however often the head decides."""
_MOST_KEPT = 64
_LONGEST = 100
WORDS = ("q", "state", "check", "user", "place", "node", "job", "kind", "level", "month", "partition")
"""The query parameters of a page, besides the page number."""
_MOST_PAGES = 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request for a page.

    `name` is from the path; `said` are the parameters of WORDS with their values, bounded in length; `page` counts from
    1.
    """

    name: str = ""
    said: tuple[tuple[str, str], ...] = ()
    page: int = 1

    @staticmethod
    def of(path: Mapping[str, Any], query: Mapping[str, str]) -> "PageRequest":
        """Return the request of an address; unknown or invalid parameters are ignored."""
        # An old bookmark must still show its page.
        said = ((word, one_line(query.get(word, "").strip(), _LONGEST)) for word in WORDS)
        number = query.get("page", "")
        page = int(number) if number.isascii() and number.isdigit() and len(number) <= len(str(_MOST_PAGES)) else 1
        return PageRequest(name=str(path.get("name", "")), said=tuple(one for one in said if one[1]), page=max(page, 1))

    def word(self, name: str) -> str:
        return dict(self.said).get(name, "")

    def link(self, page: int) -> str:
        """Return the query for another page of the same list."""
        return "?" + urlencode([*self.said, ("page", str(page))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged(Generic[T]):
    """A part of a long list, with links to the pages before and after (empty if there is none)."""

    rows: tuple[T, ...]
    total: int
    first: int
    before: str = ""
    after: str = ""

    @staticmethod
    def of(every: Sequence[T], asked: PageRequest, most: int = 200) -> "Paged[T]":
        page = min(asked.page, max(-(-len(every) // most), 1))
        begin, end = (page - 1) * most, page * most
        return Paged(
            rows=tuple(every[begin:end]),
            total=len(every),
            first=begin + 1,
            before=asked.link(page - 1) if page > 1 else "",
            after=asked.link(page + 1) if end < len(every) else "",
        )

    def map(self, change: Callable[[T], Any]) -> "Paged[Any]":
        """Return the same page with each row converted; only the rows shown are made."""
        rows = tuple(change(row) for row in self.rows)
        return Paged(rows=rows, total=self.total, first=self.first, before=self.before, after=self.after)


@dataclass(frozen=True, kw_only=True)
class Look:
    """The data of one moment.

    `ground` keeps results that earlier looks computed from records that did not change since; `kept` has finished pages
    by request.
    """

    source: Source
    snapshot: Snapshot
    now: float
    ground: FactCache = field(default_factory=FactCache)
    kept: dict[Any, str] = field(default_factory=dict)

    @cached_property
    def draft(self) -> Draft:
        """The draft of this look, which is only read."""
        return Draft(self.snapshot.seen, self.source.want, self.snapshot.memory, self.now, self.ground)

    @cached_property
    def verdicts(self) -> Mapping[NodeName, NodeVerdict]:
        return node_verdicts(self.draft)

    @cached_property
    def places(self) -> Mapping[str, list[NodeName]]:
        """The nodes by place: the place of a node is its instance group, or else its set of partitions."""
        found: defaultdict[str, list[NodeName]] = defaultdict(list)
        slots = self.snapshot.memory.slots
        titles: dict[frozenset[str], str] = {}
        for name, node in self.snapshot.seen.nodes.items():
            slot = slots.get(name)
            if slot is not None:
                found[slot.group].append(name)
                continue
            title = titles.get(node.partitions)
            if title is None:
                title = titles[node.partitions] = ", ".join(sorted(node.partitions)) or "no partition"
            found[title].append(name)
        return dict(sorted(found.items(), key=lambda one: natural_sort_key(one[0])))

    @cached_property
    def jobs_on(self) -> Mapping[NodeName, tuple[Job, ...]]:
        """The active jobs on each node, the newest first."""
        found: defaultdict[NodeName, list[Job]] = defaultdict(list)
        for job in sorted(self.snapshot.seen.jobs.values(), key=lambda job: -job.id):
            if job.is_active:
                for name in job.nodes:
                    found[name].append(job)
        return {name: tuple(jobs) for name, jobs in found.items()}

    def job(self, id: JobId) -> Job | None:
        return self.snapshot.seen.jobs.get(id)


class PageLooks:
    """The present look, shared by all readers. Thread-safe."""

    def __init__(self, source: Source) -> None:
        self._source, self._lock, self._ground = source, threading.Lock(), FactCache()
        self._look: Look | None = None

    def page(self, key: Any, made: Callable[[Look], str]) -> str:
        """Return a page, made once in a look for all readers.

        Raises Retryable before the head's first cycle has ended.
        """
        with self._lock:
            look = self._present()
            if key not in look.kept:
                html = made(look)
                if len(look.kept) >= _MOST_KEPT:
                    look.kept.clear()
                look.kept[key] = html
            return look.kept[key]

    def apart(self) -> Look:
        """Return a look that is not shared, so that no other page waits for this one. Raises as `page` does."""
        return Look(source=self._source, snapshot=self._source.snapshot(), now=self._source.clock.now())

    def _present(self) -> Look:
        snapshot, now = self._source.snapshot(), self._source.clock.now()
        if self._look is None or not self._is_good(self._look, snapshot, now):
            self._look = Look(source=self._source, snapshot=snapshot, now=now, ground=self._ground)
        return self._look

    @staticmethod
    def _is_good(look: Look, snapshot: Snapshot, now: float) -> bool:
        is_shared = look.snapshot is snapshot or len(snapshot.seen.nodes) > _LARGE
        return is_shared and now - look.now < _LEAST_S
