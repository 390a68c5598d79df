"""How often one caller may call, a bucket of tokens for reads and one for changes; and a signed change is carried out
once: who listens on the way cannot have it done again."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from steward.api.json11.errors import ApiError, Code
from steward.model.settings.sections import ApiSettings

_MAX_BUCKETS = 4096
_MAX_SEEN = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`burst` calls at once, then `per_s` calls a second."""

    per_s: float
    burst: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


def call_limits(api: ApiSettings, now: Callable[[], float]) -> "Limits":
    """How often one caller may call, as the site has set it."""
    return Limits(
        reads=Rate(per_s=api.reads_per_s, burst=api.read_burst_count),
        writes=Rate(per_s=api.writes_per_s, burst=api.write_burst_count),
        now=now,
    )


class Limits:
    """Safe to use from several threads. The callers least lately heard of are forgotten beyond a few thousand."""

    def __init__(self, *, reads: Rate, writes: Rate, now: Callable[[], float]) -> None:
        self._rates, self._now = {True: reads, False: writes}, now
        self._buckets: OrderedDict[tuple[str, bool], _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, user: str, *, read: bool) -> None:
        """Raises ApiError (ThrottlingException), after which SDKs wait and call again by themselves."""
        with self._lock:
            bucket = self._refilled(user, read)
            if bucket.tokens >= 1:
                bucket.tokens -= 1
                return
        rate, kind = self._rates[read], "reads" if read else "changes"
        raise ApiError(Code.THROTTLED, f"Rate exceeded: {rate.per_s:g} {kind} a second, {rate.burst} at once.")

    def _refilled(self, user: str, read: bool) -> _Bucket:
        now, rate, key = self._now(), self._rates[read], (user, read)
        bucket = self._buckets.setdefault(key, _Bucket(rate.burst, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(rate.burst, bucket.tokens + max(now - bucket.at, 0.0) * rate.per_s)
        bucket.at = now
        return bucket


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
