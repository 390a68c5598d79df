"""Several heads and their lease, with a steady clock each and no threads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.lease import SqlLease
from steward.model.leadership import FollowerWord, LeaderWord, Lease
from steward.ports import LeasePort, Retryable
from steward.workflows.leading import Leading, Me, OwnSight


def lease_engine(folder: Path) -> Engine:
    """A database that heads share, for the lease alone."""
    return open_engine(sqlite_url(folder / "lease.db"))


@dataclass
class HeadClock:
    """The clocks of one head. `ahead_s`: of the others' time of day."""

    time: list[float]
    ahead_s: float = 0.0

    def now(self) -> float:
        return 1_000_000.0 + self.time[0] + self.ahead_s


class CutLease:
    """A lease that cannot be reached while it `is_away`."""

    def __init__(self, lease: LeasePort) -> None:
        self._lease, self.is_away = lease, False

    def read(self) -> Lease:
        return self._reached().read()

    def take(self, seen: Lease, leader: str, word: LeaderWord) -> Lease | None:
        return self._reached().take(seen, leader, word)

    def renew(self, word: LeaderWord) -> Lease:
        return self._reached().renew(word)

    def release(self) -> None:
        self._reached().release()

    def followers(self) -> Mapping[str, FollowerWord]:
        return self._reached().followers()

    def tell(self, follower: str, word: FollowerWord) -> None:
        self._reached().tell(follower, word)

    def _reached(self) -> LeasePort:
        if self.is_away:
            raise Retryable("the lease's database does not answer")
        return self._lease


@dataclass
class OneHead:
    """A head's part in the lease. `deadlines`: what its timer was set to; `word`: what it says as a follower."""

    leading: Leading
    lease: CutLease
    deadlines: list[float | None]
    due: float = 0.0
    is_stopped: bool = False
    is_blind: bool = False
    is_beside: bool = True
    word: FollowerWord = field(default_factory=lambda: FollowerWord(picture_s=1.0))

    @property
    def may_act(self) -> bool:
        return self.leading.leadership().is_mine


class Heads:
    """Heads by host on one database; `run` lets time pass for all that are not stopped."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self.time = [0.0]
        self.heads: dict[str, OneHead] = {}
        self._engine = engine

    def add(self, name: str, *, host: str = "", ahead_s: float = 0.0) -> OneHead:
        """Start a head; `host` is its host where that is not called as the head is."""
        lease, deadlines = CutLease(SqlLease(self._engine())), list[float | None]()
        leading = Leading(
            lease,
            Me(name=name, place=host or name),
            clock=HeadClock(self.time, ahead_s),
            steady=lambda: self.time[0],
            deadman=deadlines.append,
            peers=[other for other in ("head1", "head2") if other != name],
            sight=OwnSight(
                is_blind=lambda: head.is_blind,
                is_beside_slurmctld=lambda: head.is_beside,
                as_follower=lambda: head.word,
            ),
        )
        head = self.heads[host or name] = OneHead(leading, lease, deadlines, due=self.time[0])
        return head

    def run(self, seconds: float) -> None:
        """Let time pass in small steps; no two heads may act at once at any of them."""
        until = self.time[0] + seconds
        while self.time[0] < until - 1e-9:
            self.time[0] = min(self.time[0] + 0.05, until)
            for head in list(self.heads.values()):
                if not head.is_stopped and head.leading.end is None and self.time[0] >= head.due:
                    head.due = self.time[0] + head.leading.step()
            acting = [name for name, head in self.heads.items() if head.may_act]
            assert len(acting) <= 1, f"{acting} may act at once"

    @property
    def leader(self) -> str:
        return next((name for name, head in self.heads.items() if head.may_act), "")
