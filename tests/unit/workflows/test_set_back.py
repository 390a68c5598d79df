"""A clock that was set back: what was stamped before is taken to be as much older, once."""

from dataclasses import replace

from steward.model.ids import Key
from steward.model.memory import Breaker, Memory
from steward.workflows.set_back import SetBacks, earlier, last_stamp
from tests.builders.picture import a_cluster

T0 = 1_700_000_000.0


def test_times_become_earlier_and_counts_durations_and_texts_stay() -> None:
    breaker = Breaker(scope="all", tripped=T0, text="too many", patience_s=1800.0)
    memory = Memory(asked={Key("down:n1"): T0 + 5.0}, breakers={"all": breaker}, next_case=7)
    shifted = earlier(memory, 3600.0)
    assert shifted.asked == {"down:n1": T0 - 3595.0}
    assert shifted.breakers == {"all": replace(breaker, tripped=T0 - 3600.0)}
    assert shifted.next_case == 7


def test_what_is_stamped_after_the_clock_was_set_back_stays() -> None:
    clock = SetBacks(T0)
    assert clock.note(T0 - 3600.0) == 3600.0
    now = T0 - 3500.0
    assert clock.in_time((T0 - 1.0, now - 1.0), now) == (T0 - 3601.0, now - 1.0)


def test_nothing_of_before_seems_to_be_of_after_however_long_nobody_looked() -> None:
    """20 s passed, most of them before the clock was set back: by how much it was is known to 20 s only."""
    clock = SetBacks(T0)
    clock.note(T0 + 20.0 - 3600.0)
    assert clock.in_time(T0 + 19.0, T0 - 3579.0) == T0 - 3580.0


def test_a_clock_that_goes_on_or_is_slewed_changes_nothing() -> None:
    clock = SetBacks(T0)
    assert [clock.note(T0), clock.note(T0 + 10.0), clock.note(T0 + 9.5)] == [0.0, 0.0, 0.0]
    assert clock.in_time(T0 + 99.0, T0) == T0 + 99.0


def test_the_last_stamp_is_that_of_a_case_where_nothing_else_is_remembered() -> None:
    case = a_cluster().lost("n2").then().memory.cases
    (opened,) = (each.entered for each in case.values())
    assert last_stamp(Memory(cases=case)) == opened
    assert last_stamp(Memory(cases=case, looked=opened + 1.0)) == opened + 1.0
    assert last_stamp(Memory()) == 0.0
