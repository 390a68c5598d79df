"""How fast one user may speak: so many lines at once, then so many a second. Who is faster waits, the others do not."""

from collections.abc import Callable

_MAX_USERS = 1024


class Allowance:
    def __init__(self, *, per_s: float, burst: int, now: Callable[[], float]) -> None:
        self._each_s, self._burst_s, self._now = 1 / per_s, (burst - 1) / per_s, now
        self._spent: dict[int, float] = {}
        """Until when what each user said is paid for."""

    def wait_s(self, user: int) -> float:
        """Counts a line of the user's; how long it has to wait."""
        now = self._now()
        if len(self._spent) >= _MAX_USERS:
            self._spent = {each: until for each, until in self._spent.items() if until > now}
        paid = max(self._spent.get(user, now), now)
        self._spent[user] = paid + self._each_s
        return max(paid - self._burst_s - now, 0.0)
