"""Connections that have not proved themselves yet: bounded, and no address can keep the others out."""

from collections import Counter
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    def close(self, why: str) -> None: ...


L = TypeVar("L", bound=Closable)


class Greeting(Generic[L]):
    """At most `most` at once. Where they are that many, who comes from the address that has the most is refused; for
    anybody else the newest of that address makes room."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._hosts: dict[L, str] = {}

    @property
    def links(self) -> tuple[L, ...]:
        return tuple(self._hosts)

    def enter(self, link: L, host: str) -> bool:
        """Whether it may stay."""
        if len(self._hosts) >= self._most and not self._make_room(host):
            return False
        self._hosts[link] = host
        return True

    def leave(self, link: L) -> None:
        self._hosts.pop(link, None)

    def _make_room(self, host: str) -> bool:
        counts = Counter(self._hosts.values())
        crowd, size = counts.most_common(1)[0]
        if counts[host] >= size:
            return False
        newest = next(link for link, its in reversed(self._hosts.items()) if its == crowd)
        self.leave(newest)
        newest.close("too many connections from its address")
        return True
