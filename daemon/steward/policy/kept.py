"""A table of memory while a plan is made.

A table that the plan did not change is frozen as the very object that the plan began with: that nothing changed is then
seen without comparing thousands of rows.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_ABSENT: Any = object()


class Kept(dict[K, V]):
    """A copy of `before` that knows which rows were changed; setting a row to the object that it has is no change."""

    __slots__ = ("_before", "touched")

    def __init__(self, before: Mapping[K, V]) -> None:
        super().__init__(
            before.copy() if isinstance(before, MappingProxyType) else before
        )  # a copy is many times faster
        self._before: Mapping[K, V] | None = before
        self.touched: set[K] = set()
        """Keys of rows that were set or removed."""

    @property
    def unchanged(self) -> Mapping[K, V] | None:
        """Return the mapping that this table began with; None after the first change."""
        return self._before

    def frozen(self) -> Mapping[K, V]:
        """Return the mapping to remember."""
        return MappingProxyType(self) if self._before is None else self._before

    def drop(self, keys: Iterable[K]) -> None:
        for key in keys:
            del self[key]

    def __setitem__(self, key: K, value: V) -> None:
        if self.get(key, _ABSENT) is not value:
            self._change((key,))
            super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        self._change((key,))

    def setdefault(self, key: K, default: V) -> V:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: K, *default: Any) -> Any:
        if key in self:
            self._change((key,))
        return super().pop(key, *default)

    def popitem(self) -> tuple[K, V]:
        key, value = super().popitem()
        self._change((key,))
        return key, value

    def clear(self) -> None:
        self._change(self)
        super().clear()

    def update(self, *others: Any, **named: Any) -> None:
        rows: dict[K, V] = dict(*others, **named)
        self._change(rows)
        super().update(rows)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def _change(self, keys: Iterable[K]) -> None:
        self._before = None
        self.touched.update(keys)
