"""A signed change is carried out once: who listens on the way cannot have it done again."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from steward.api.json11.errors import ApiError, Code

_MAX_SEEN = 65_536


class Replays:
    """Signatures that were taken, each for as long as its time would still be good (twice `skew_s`). Safe to use from
    several threads. Beyond many thousands the oldest is forgotten here, but not by `first_use` (see StorePort), which
    knows also what was taken before a restart."""

    def __init__(self, *, skew_s: float, now: Callable[[], float], first_use: Callable[[str, float], bool]) -> None:
        self._keep_s, self._now, self._first_use = 2 * skew_s, now, first_use
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, signature: str) -> None:
        """Raises ApiError for one that was taken before: a code after which SDKs sign anew, because two equal requests
        of one second have one signature. Raises Retryable when it cannot be noted: nothing is done then."""
        with self._lock:
            self._forget()
            is_known = signature in self._seen
            if not is_known:
                self._seen[signature] = self._now()
        if is_known or not self._first_use(signature, self._now() + self._keep_s):
            raise ApiError(Code.THROTTLED, "A request with this very signature was taken before: sign it anew.")

    def _forget(self) -> None:
        now = self._now()
        while self._seen and (len(self._seen) >= _MAX_SEEN or not self._is_kept(next(iter(self._seen.values())), now)):
            self._seen.popitem(last=False)

    def _is_kept(self, at: float, now: float) -> bool:
        """A clock that was set back makes the next ones seem newer; the oldest still goes first."""
        return now - at <= self._keep_s
