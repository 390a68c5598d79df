"""A munged in memory: credentials that only holders of its key can make, and that can be read once."""

import itertools
from dataclasses import dataclass, field

from steward.ports import Permanent, Retryable


@dataclass
class FakeMunged:
    """What the daemon keeps. `up` False: nobody answers."""

    up: bool = True
    made: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    readers: dict[str, int] = field(default_factory=dict)
    """Of those credentials that only one user can read."""
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)


@dataclass
class FakeMunge:
    """A MungePort for the process of user `uid` that talks to `munged`."""

    munged: FakeMunged = field(default_factory=FakeMunged)
    uid: int = 0

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        self._need_munged()
        credential = f"MUNGE:{next(self.munged.numbers)}:"
        if reader is not None:
            self.munged.readers[credential] = reader
        self.munged.made[credential] = (self.uid, payload)
        return credential

    def decode(self, credential: str) -> tuple[int, bytes]:
        self._need_munged()
        if credential not in self.munged.made:
            raise Permanent("munge decode: forged, or replayed")
        if self.munged.readers.get(credential, self.uid) != self.uid:
            raise Permanent("munge decode: for another user")
        return self.munged.made.pop(credential)

    def _need_munged(self) -> None:
        if not self.munged.up:
            raise Retryable("munge: no answer (is munged running?)")
