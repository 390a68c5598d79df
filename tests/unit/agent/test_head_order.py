"""Which head an agent dials next, and when."""

import random

import pytest

from steward.adapters.wire.head_messages import FollowerGreeting
from steward.agent.head_order import FIRST_BACKOFF_S, LAST_BACKOFF_S, HeadOrder, backoff_s


def order(*heads: str, chance: float = 0.5) -> HeadOrder:
    return HeadOrder(heads, lambda: chance)


def test_one_head_is_tried_with_growing_waits() -> None:
    ours, now, waits = order("a"), 0.0, list[float]()
    for _ in range(10):
        head, wait_s = ours.next(now)
        waits.append(wait_s)
        now += wait_s
        ours.ended(head, now, lasted_s=0.0)
    assert waits == pytest.approx([0.0, *(backoff_s(tries, 0.5) for tries in range(1, 10))])


def test_at_the_start_the_heads_are_tried_in_the_order_of_the_settings() -> None:
    ours = order("b", "a", "c")
    tried = []
    for _ in range(3):
        head, wait_s = ours.next(1.0)
        assert wait_s == 0.0
        ours.ended(head, 1.0, lasted_s=0.0)
        tried.append(head)
    assert tried == ["b", "a", "c"]


@pytest.mark.parametrize("seed", range(5))
def test_each_head_is_dialled_no_faster_than_if_it_were_the_only_one(seed: int) -> None:
    """However many there are, and whatever ends: otherwise a second head would cost the first one more dials."""
    rng = random.Random(seed)
    ours, now = HeadOrder(("a", "b"), rng.random), 0.0
    tries, last = {"a": 0, "b": 0}, {"a": float("-inf"), "b": float("-inf")}
    for _ in range(200):
        head, wait_s = ours.next(now)
        now += wait_s
        assert now >= last[head] + backoff_s(tries[head], 0.0) - 1e-9
        now += rng.random() * rng.choice((0.01, 2.0))
        ours.ended(head, now, lasted_s=0.0)
        tries[head], last[head] = tries[head] + 1, now
    assert tries["a"] > 20
    assert tries["b"] > 20


def test_where_a_steady_connection_ends_the_other_head_is_asked_first_and_at_once() -> None:
    ours = order("a", "b")
    ours.ended("a", 100.0, lasted_s=60.0)
    head, wait_s = ours.next(100.0)
    assert head == "b"
    assert wait_s <= FIRST_BACKOFF_S / 2
    ours.ended("b", 100.0 + wait_s, lasted_s=0.0)
    assert ours.next(100.0 + wait_s)[0] == "a"


def test_agents_that_lose_their_head_at_once_do_not_dial_at_once() -> None:
    waits = set()
    for seed in range(20):
        ours = HeadOrder(("a", "b"), random.Random(seed).random)
        ours.ended("a", 100.0, lasted_s=60.0)
        waits.add(ours.next(100.0)[1])
    assert len(waits) == 20


def test_a_head_that_follows_says_when_to_ask_again_and_its_leader_is_dialled_at_once() -> None:
    ours = order("a", "b", "c")
    ours.follows("a", 10.0, FollowerGreeting(leader="c", again_s=3.0))
    assert ours.next(10.0) == ("c", 0.0)
    ours.ended("c", 10.0, lasted_s=0.0)
    assert ours.next(10.0) == ("b", 0.0)
    ours.ended("b", 10.0, lasted_s=0.0)
    for now in (10.2, 10.5, 11.0, 12.0):
        head, _ = ours.next(now)
        assert head != "a"
        ours.ended(head, now, lasted_s=0.0)
    ours.ended("b", 13.0, lasted_s=0.0)
    ours.ended("c", 13.0, lasted_s=0.0)
    assert ours.next(13.0) == ("a", 0.0)


def test_a_leader_that_was_just_tried_in_vain_keeps_its_pace() -> None:
    ours, now = order("a", "b"), 0.0
    for _ in range(8):
        ours.ended("a", now, lasted_s=0.0)
    ours.follows("b", now, FollowerGreeting(leader="a", again_s=20.0))
    assert ours.next(now) == ("a", backoff_s(8, 0.5))


@pytest.mark.parametrize("leader", ["", "elsewhere:6861", "a"])
def test_no_word_of_a_follower_brings_an_agent_to_another_head_than_its_own_nor_makes_it_dial_without_a_wait(
    leader: str,
) -> None:
    ours = order("a")
    ours.follows("a", 10.0, FollowerGreeting(leader=leader, again_s=0.0))
    head, wait_s = ours.next(10.0)
    assert head == "a"
    assert wait_s == pytest.approx(FIRST_BACKOFF_S)


def test_the_longest_wait_is_bounded() -> None:
    ours = order("a", chance=1.0)
    for _ in range(1000):
        ours.ended("a", 0.0, lasted_s=0.0)
    assert ours.next(0.0)[1] == LAST_BACKOFF_S
