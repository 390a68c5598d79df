"""What a follower sees of Slurm, now and then, and when a leader gives its lead to a follower that sees more."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from steward.model.leadership import FollowerWord
from steward.ports import PortError

LOOK_S, LOOK_SOON_S = 60.0, 3.0
"""How often a follower looks at Slurm: seldom, but soon while the leader cannot read it."""
BLIND_S = 5.0
"""How long a leader reads nothing of Slurm before it gives its lead to a head that does."""
SETTLED_S = 60.0
"""How long a head leads at least before it gives its lead to the head beside slurmctld."""


class Following:
    """The looks of a follower. In the cycle's thread; any thread may call `word`."""

    def __init__(
        self,
        look: Callable[[], str],
        is_beside_slurmctld: Callable[[], bool],
        is_leader_blind: Callable[[], bool],
        steady: Callable[[], float],
    ) -> None:
        """Take the functions; `look` reads Slurm and the store, and returns why that failed, if it did."""
        self._look, self._beside, self._blind, self._steady = look, is_beside_slurmctld, is_leader_blind, steady
        self._looked: float | None = None
        self._tried = float("-inf")
        self._trouble = "it has not looked at Slurm yet"

    def step(self) -> None:
        """Look at Slurm if that is due."""
        if self._steady() - self._tried < (LOOK_SOON_S if self._blind() else LOOK_S):
            return
        self._tried = began = self._steady()
        try:
            trouble = self._look()
        except PortError as error:
            trouble = str(error)
        self._trouble, self._looked = trouble, self._looked if trouble else began

    def word(self) -> FollowerWord:
        """Return what this follower says of itself."""
        age_s = None if self._looked is None else self._steady() - self._looked
        return FollowerWord(picture_s=age_s, trouble=self._trouble, is_beside_slurmctld=self._beside())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSight:
    """What a leader knows of its own place. `blind_s`: for how long it has read nothing of Slurm; 0 if it reads."""

    led_s: float
    blind_s: float
    is_beside_slurmctld: bool


def reason_to_hand_over(mine: LeaderSight, followers: Iterable[FollowerWord]) -> str:
    """Return why the lead should go to one of these followers, which were heard lately; empty if it should not."""
    ready = [each for each in followers if not each.trouble and each.picture_s is not None]
    if mine.blind_s >= BLIND_S and any((each.picture_s or 0.0) < mine.blind_s for each in ready):
        return "slurmctld does not answer here, and answers another head"
    if mine.led_s < SETTLED_S or mine.blind_s or mine.is_beside_slurmctld:
        return ""
    return "slurmctld runs beside another head" if any(each.is_beside_slurmctld for each in ready) else ""
