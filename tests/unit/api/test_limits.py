"""How often a caller may call."""

import pytest

from steward.api.admission import CallerLimits, Rate
from steward.api.json11.errors import ApiError, Code
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def limits(clock: FakeClock) -> CallerLimits:
    return CallerLimits(reads=Rate(per_s=2, burst=4), writes=Rate(per_s=1, burst=2), now=clock.now)


def goes_through(limits: CallerLimits, user: str, read: bool) -> bool:
    try:
        limits.take(user, read=read)
    except ApiError:
        return False
    return True


def taken(limits: CallerLimits, user: str = "a", *, read: bool = True) -> int:
    """How many of many calls go through now."""
    return sum(goes_through(limits, user, read) for _ in range(20))


def test_one_call_too_many_is_told_to_wait(limits: CallerLimits) -> None:
    taken(limits)
    with pytest.raises(ApiError, match="2 reads a second, 4 at once") as refused:
        limits.take("a", read=True)
    assert refused.value.code is Code.THROTTLED


def test_a_burst_and_then_the_rate(limits: CallerLimits, clock: FakeClock) -> None:
    assert taken(limits) == 4
    clock.at += 1.5
    assert taken(limits) == 3


def test_a_long_silence_saves_no_more_than_a_burst(limits: CallerLimits, clock: FakeClock) -> None:
    taken(limits)
    clock.at += 3600
    assert taken(limits) == 4


def test_reads_and_changes_are_counted_apart(limits: CallerLimits) -> None:
    assert (taken(limits, read=True), taken(limits, read=False)) == (4, 2)


def test_one_caller_does_not_use_up_anothers_share(limits: CallerLimits) -> None:
    assert (taken(limits, "a"), taken(limits, "b")) == (4, 4)


def test_a_clock_that_is_set_back_locks_nobody_out(limits: CallerLimits, clock: FakeClock) -> None:
    taken(limits)
    clock.at -= 500
    assert taken(limits) == 0
    clock.at += 1
    assert taken(limits) == 2
