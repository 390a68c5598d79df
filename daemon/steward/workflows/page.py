"""One kind of Slurm's records as last read: all by the sweep, some once more since by narrow looks. Pure."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from steward.model.subject import ReadTimes

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[K, V]):
    """`records` stays the same object as long as nothing in it changed. Before the first sweep all is of time 0."""

    records: Mapping[K, V] = field(default_factory=lambda: MappingProxyType({}))
    times: ReadTimes[K] = field(default_factory=lambda: ReadTimes(swept=0.0))

    def with_sweep(self, found: Mapping[K, V], began: float, now: float) -> "Page[K, V]":
        """All of them were read. What was looked at later than that stands; a time to come is of a wrong clock."""
        looked = {key: at for key, at in self.times.looked.items() if began < at <= now}
        records = dict(found)
        for key in looked:
            _put(records, key, self.records.get(key))
        return Page(records=self._same_as(records), times=ReadTimes(swept=began, looked=MappingProxyType(looked)))

    def with_look(self, wanted: Collection[K], found: Mapping[K, V], began: float) -> "Page[K, V]":
        """Just `wanted` were asked for, `found` is what came: one that did not come is gone."""
        news = {key: found.get(key) for key in {*wanted, *found} if self.times.at(key) <= began}
        times = replace(self.times, looked=MappingProxyType({**self.times.looked, **dict.fromkeys(news, began)}))
        changed = {key: value for key, value in news.items() if self.records.get(key) != value}
        if not changed:
            return replace(self, times=times)
        records = dict(self.records)
        for key, value in changed.items():
            _put(records, key, value)
        return Page(records=MappingProxyType(records), times=times)

    def stale(self, wanted: Mapping[K, float], now: float) -> frozenset[K]:
        """Those of `wanted` that were not read at the time (Unix s) beside them or later."""
        return frozenset(key for key, since in wanted.items() if not since <= self.times.at(key) <= now)

    def is_swept(self, since: float, now: float) -> bool:
        """All were read at `since` or later."""
        return self.times.swept > 0.0 and since <= self.times.swept <= now

    def _same_as(self, records: dict[K, V]) -> Mapping[K, V]:
        """The old object for the same content; where it is another, records that did not change are the same ones."""
        before = self.records
        for key, value in records.items():
            old = before.get(key)
            if old is not value and old == value:
                records[key] = old
        is_same = len(records) == len(before) and all(before.get(key) is value for key, value in records.items())
        return before if is_same else MappingProxyType(records)


def _put(records: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        records.pop(key, None)
    else:
        records[key] = value
