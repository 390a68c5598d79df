"""A munged in memory: credentials that only holders of its key can make, and that can be read once."""

import itertools
from dataclasses import dataclass, field

from steward.ports import Permanent, Retryable, WrongClock

TTL_S = 300.0


@dataclass
class FakeMunged:
    """What the daemon keeps. `up` False: nobody answers."""

    up: bool = True
    made: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    behind: dict[str, float] = field(default_factory=dict)
    readers: dict[str, int] = field(default_factory=dict)
    """Of those credentials that only one user can read."""
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)


@dataclass
class FakeMunge:
    """A MungePort for the process of user `uid` that talks to `munged`."""

    munged: FakeMunged = field(default_factory=FakeMunged)
    uid: int = 0
    behind_s: float = 0.0
    """By how much this process's clock is behind that of who reads its credentials."""

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        self._need_munged()
        credential = f"MUNGE:{next(self.munged.numbers)}:"
        if reader is not None:
            self.munged.readers[credential] = reader
        self.munged.made[credential] = (self.uid, payload)
        self.munged.behind[credential] = self.behind_s
        return credential

    def decode(self, credential: str) -> tuple[int, bytes]:
        self._need_munged()
        if credential not in self.munged.made:
            raise Permanent("munge decode: forged, or replayed")
        if self.munged.readers.get(credential, self.uid) != self.uid:
            raise Permanent("munge decode: for another user")
        uid, payload = self.munged.made.pop(credential)
        if abs(behind_s := self.munged.behind[credential]) > TTL_S:
            raise WrongClock("munge decode: expired", uid=uid, payload=payload, behind_s=behind_s)
        return uid, payload

    def _need_munged(self) -> None:
        if not self.munged.up:
            raise Retryable("munge: no answer (is munged running?)")
