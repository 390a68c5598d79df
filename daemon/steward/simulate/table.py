"""A table of records that pictures show: a picture keeps the rows that it was shown."""

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ShownTable(Generic[K, V]):
    """Rows that may change after they were shown. While no row changes, the same mapping is shown again."""

    def __init__(self) -> None:
        self._rows: dict[K, V] = {}
        self.is_news = True
        """Whether a row changed since the table was last shown."""

    def __getitem__(self, key: K) -> V:
        return self._rows[key]

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def get(self, key: K) -> V | None:
        """Return the row; None if there is none."""
        return self._rows.get(key)

    def put(self, key: K, row: V) -> None:
        """Set a row."""
        if self._rows.get(key) is not row:
            self._own()[key] = row

    def drop(self, key: K) -> None:
        """Remove a row, if there is one."""
        if key in self._rows:
            del self._own()[key]

    @property
    def rows(self) -> Mapping[K, V]:
        """Return all rows. Not to be kept: they change."""
        return self._rows

    def shown(self) -> Mapping[K, V]:
        """Return all rows as they are now, to be kept."""
        self.is_news = False
        return self._rows

    def _own(self) -> dict[K, V]:
        if not self.is_news:
            self._rows, self.is_news = dict(self._rows), True
        return self._rows
