"""Which of a cluster's heads leads: the lease, and what leader and followers say of themselves beside it."""

from dataclasses import dataclass

# Times here are by the clock of the head that wrote them: heads compare how often a row changed, never the times.


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The head that leads.

    A `leader` is named by its entry in `agent.head` (`head1:6861`), which is also its address for agents and for other
    heads; empty while no head leads. `epoch` is larger each time that a head takes the lead. `since` is Unix seconds by
    the leader's clock. `is_mine` is whether the head that says this leads, and may act now.
    """

    leader: str = ""
    epoch: int = 0
    since: float = 0.0
    is_mine: bool = False


ALONE = Leadership(is_mine=True)
"""The leadership of a head without a shared database, which has no peers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderWord:
    """What a leader writes into the lease each time that it renews it. `at` and `since` are Unix seconds.

    `place` tells its host and state_dir, of which one process can be a head, from any other. `cluster` is the name of
    the cluster whose state the database has.
    """

    at: float = 0.0
    since: float = 0.0
    version: str = ""
    cluster: str = ""
    place: str = ""
    is_blind: bool = False
    """Whether it cannot read Slurm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The lease as its row had it. `beat` counts its changes within an epoch. Without a `leader` it is free."""

    leader: str = ""
    epoch: int = 0
    beat: int = 0
    word: LeaderWord = LeaderWord()


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerWord:
    """What a follower says of itself, a few times a minute."""

    beat: int = 0
    version: str = ""
    picture_s: float | None = None
    """How old its picture of Slurm was when it said this; None if it has none."""
    trouble: str = ""
    """Why it could not take over now; empty if it could."""
    is_beside_slurmctld: bool = False
    """Whether the slurmctld that is in control runs on its host."""
    ahead_s: float = 0.0
    """By how much its clock is ahead of the leader's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherHead:
    """A follower as the leader knows it. `is_heard`: it said something lately; the rest is what it said last."""

    name: str
    is_heard: bool
    picture_s: float | None
    trouble: str
    version: str
    ahead_s: float = 0.0

    @property
    def why_not(self) -> str:
        """Return why this head could not take over now; empty if it could."""
        return self.trouble if self.is_heard else "it is not heard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The heads of a cluster, for people, as one of them knows them.

    `is_mine` is whether that one leads, and may act; else `picture_s` is how old its picture of Slurm is. `since` is
    Unix seconds; `trouble` is why that one may not lead now, such as a database that does not answer.
    """

    is_mine: bool
    picture_s: float | None
    leader: str
    epoch: int
    since: float
    is_beside_slurmctld: bool
    trouble: str
    others: tuple[OtherHead, ...]

    @property
    def successors(self) -> tuple[str, ...]:
        """Return the names of the heads that could take over now."""
        return tuple(other.name for other in self.others if not other.why_not)
