"""How often one caller may call: a bucket of tokens for reads and one for changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from steward.api.json11.errors import ApiError, Code

_MAX_BUCKETS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`burst` calls at once, then `per_s` calls a second."""

    per_s: float
    burst: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


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
