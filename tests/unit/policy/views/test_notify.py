"""Which events become messages, and when."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.events import Event, Level
from steward.model.ids import JobId
from steward.model.notify import ChannelRule, ChannelState, Message
from steward.views.notify import (
    MOST_QUEUED,
    MOST_TRIES,
    REST,
    after_failed_try,
    after_restart,
    after_try_began,
    is_given_up,
    is_wanted,
    next_due,
    next_message,
    with_events,
    without_message,
)
from tests.builders.notify import RULE, an_event
from tests.builders.picture import T0

NEW = ChannelState(cursor=0)


def taken(*events: Event, state: ChannelState = NEW, rule: ChannelRule = RULE, now: float = T0) -> ChannelState:
    numbered = list(enumerate(events, start=state.cursor + 1))
    return with_events(state, rule, numbered, lambda node: "main", now)


def after_first(state: ChannelState, now: float = T0) -> tuple[ChannelState, Message]:
    message = next_message(state, RULE, now)
    assert message is not None
    return without_message(after_try_began(state, message, now), message), message


def test_the_first_of_its_kind_is_sent_at_once() -> None:
    state = taken(an_event())
    assert state.cursor == 1
    message = next_message(state, RULE, T0)
    assert message is not None
    assert (message.count, message.last.text) == (1, "node.fault of n2")


def test_what_follows_within_the_window_is_one_message_with_a_count_at_its_end() -> None:
    state, _ = after_first(taken(an_event()))
    for second in range(1, 6):
        state = taken(an_event(at=T0 + second, text=f"again {second}"), state=state, now=T0 + second)
    assert next_message(state, RULE, T0 + 299) is None
    assert next_due(state, RULE, T0 + 6) == T0 + 300
    state, message = after_first(state, T0 + 300)
    assert (message.count, message.last.text, message.since) == (5, "again 5", T0 + 1)
    assert state.queue == ()


def test_after_the_window_the_next_one_is_new() -> None:
    state, _ = after_first(taken(an_event()))
    assert next_message(taken(an_event(), state=state, now=T0 + 301), RULE, T0 + 301) is not None


def test_another_node_or_job_or_kind_is_another_message() -> None:
    others = (an_event(), an_event(node="n3"), an_event("node.lost"), an_event(job=7))
    assert len(taken(*others).queue) == 4
    assert len(taken(an_event(case="c1"), an_event(case="c2")).queue) == 1


@pytest.mark.parametrize(
    ("rule", "event", "wanted"),
    [
        ({"levels": frozenset({Level.ERROR})}, {}, False),
        ({"kinds": ("node.", "case.")}, {}, True),
        ({"kinds": ("case.",)}, {}, False),
        ({"groups": frozenset({"main"})}, {}, True),
        ({"groups": frozenset({"other"})}, {}, False),
        ({"groups": frozenset({"other"})}, {"data": (("group", "other"),)}, True),
        ({"groups": frozenset({"main"})}, {"node": None}, False),
        ({}, {"kind": "notify.failed", "level": Level.ERROR}, False),
    ],
)
def test_a_channel_is_sent_what_its_filters_let_through(
    rule: dict[str, Any], event: dict[str, Any], wanted: bool
) -> None:
    assert is_wanted(replace(an_event(), **event), replace(RULE, **rule), lambda node: "main") is wanted


def test_more_than_its_share_of_the_hour_waits_and_errors_come_first() -> None:
    rule = replace(RULE, per_hour=2)
    state = taken(
        *(an_event(node=f"n{i}") for i in range(3)), an_event("breaker.tripped", "", level=Level.ERROR), rule=rule
    )
    order = []
    for _ in range(2):
        message = next_message(state, rule, T0)
        assert message is not None
        order.append(message.last.kind)
        state = without_message(after_try_began(state, message, T0), message)
    assert order == ["breaker.tripped", "node.fault"]
    assert next_message(state, rule, T0 + 3599) is None
    assert next_due(state, rule, T0) == T0 + 3600
    assert next_message(state, rule, T0 + 3600) is not None


def test_a_storm_becomes_one_message_and_no_error_is_hidden_in_it_while_there_is_room() -> None:
    storm = [an_event(node=f"n{i}") for i in range(500)]
    alarms = [an_event("breaker.tripped", "", level=Level.ERROR), *storm[:3]]
    state = taken(*storm, *alarms)
    assert len(state.queue) == MOST_QUEUED
    (rest,) = [one for one in state.queue if one.key == REST]
    assert sum(one.count for one in state.queue) == 504
    assert rest.count >= 500 - MOST_QUEUED
    assert any(one.level is Level.ERROR and one.key != REST for one in state.queue)


def test_what_failed_is_tried_again_ever_later_and_given_up_in_the_end() -> None:
    state, waits, now = taken(an_event()), [], T0
    while message := next_message(state, RULE, now):
        state = after_failed_try(after_try_began(state, message, now), message, now, is_final=False)
        if is_given_up(state, message):
            break
        again = next_due(state, RULE, now)
        assert again is not None
        waits.append(again - now)
        now = again
    assert waits == [5.0, 30.0, 120.0, 600.0]
    assert len(state.attempts) == MOST_TRIES


def test_what_is_not_wanted_there_is_given_up_at_once() -> None:
    state = taken(an_event())
    message = state.queue[0]
    assert is_given_up(after_failed_try(after_try_began(state, message, T0), message, T0, is_final=True), message)


@pytest.mark.parametrize(("level", "again"), [(Level.ERROR, True), (Level.WARNING, False)])
def test_of_what_was_being_tried_at_a_crash_only_errors_are_sent_again(level: Level, again: bool) -> None:
    state = taken(an_event(level=level))
    trying = after_try_began(state, state.queue[0], T0)
    back = after_restart(trying)
    assert bool(back.queue) is again
    assert all(one.number == state.queue[0].number and not one.trying for one in back.queue)


def test_an_error_stays_one_whatever_follows_it() -> None:
    (message,) = taken(an_event(level=Level.ERROR), an_event(level=Level.INFO)).queue
    assert (message.level, message.last.level, message.count) == (Level.ERROR, Level.INFO, 2)


def test_a_restart_keeps_what_waits() -> None:
    state = taken(an_event(), an_event(node="n3"))
    assert after_restart(state) == state


def test_what_users_bring_about_for_their_jobs_takes_half_of_the_hour_and_comes_last() -> None:
    """One user's jobs would else keep it from an administrator that a node is dead."""
    state, told = taken(*(an_event("job.budget", node="", job=JobId(id)) for id in range(1, 60))), 0
    while next_message(state, RULE, T0) is not None:
        state, _ = after_first(state)
        told += 1
    assert told == RULE.per_hour // 2
    assert next_due(state, RULE, T0) == T0 + 3600.0
    state = taken(an_event(), an_event("incident.opened", node="", level=Level.ERROR), state=state)
    assert next_due(state, RULE, T0) == T0
    state, first = after_first(state)
    state, second = after_first(state)
    assert [first.last.kind, second.last.kind] == ["incident.opened", "node.fault"]
    assert next_message(state, RULE, T0) is None
    later = next_message(state, RULE, T0 + 3600.0)
    assert later is not None
    assert later.last.kind == "job.budget"
