"""The lead of several heads: one leads, another takes over, and none acts that may not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from steward.model.leadership import FollowerWord
from steward.ports import Unsent
from steward.workflows.leading import ACTS_S, DEADMAN_S, LOOK_S, TAKE_S, Alone, End
from tests.builders.heads import Heads, lease_engine

_SETTLED_S = 120.0


@pytest.fixture
def heads(tmp_path: Path) -> Iterator[Heads]:
    engines: list[Engine] = []

    def engine() -> Engine:
        engines.append(lease_engine(tmp_path))
        return engines[-1]

    yield Heads(engine)
    for each in engines:
        each.dispose()


def test_the_first_head_leads_at_once_and_the_second_follows_it(heads: Heads) -> None:
    heads.add("head1")
    heads.run(1.0)
    second = heads.add("head2")
    heads.run(60.0)

    assert heads.leader == "head1"
    known = second.leading.leadership()
    assert (known.leader, known.is_mine) == ("head1", False)


def test_of_two_heads_that_start_at_once_one_leads(heads: Heads) -> None:
    heads.add("head1")
    heads.add("head2")
    heads.run(30.0)

    assert heads.leader in ("head1", "head2")
    assert len({head.leading.leadership().epoch for head in heads.heads.values()}) == 1


def test_a_follower_takes_over_from_a_head_that_is_gone(heads: Heads) -> None:
    heads.add("head1")
    heads.run(1.0)
    second = heads.add("head2")
    heads.run(10.0)
    epoch = second.leading.leadership().epoch
    del heads.heads["head1"]
    heads.run(TAKE_S + LOOK_S + 0.1)

    assert heads.leader == "head2"
    assert second.leading.leadership().epoch > epoch


def test_a_head_that_starts_again_takes_its_own_lease_at_once(heads: Heads) -> None:
    heads.add("head1")
    heads.run(10.0)
    heads.add("head1")
    heads.run(0.1)

    assert heads.leader == "head1"


def test_two_hosts_whose_heads_have_one_name_never_lead_at_once(heads: Heads) -> None:
    """As where `agent.head` is left at its default on both: the second one does not take the lease for its own."""
    heads.add("head1", host="a")
    heads.run(10.0)
    second = heads.add("head1", host="b")
    heads.run(60.0)

    assert heads.leader == "a"
    assert "another host's head has the same name, head1" in second.leading.trouble()
    del heads.heads["a"]
    heads.run(TAKE_S + 2 * LOOK_S + 0.1)
    assert heads.leader == "b"


def test_a_lease_that_is_given_up_is_taken_at_the_next_look(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(1.0)
    heads.add("head2")
    heads.run(10.0)
    first.leading.hand_over("maintenance")
    first.leading.release()
    heads.run(LOOK_S + 0.1)

    assert heads.leader == "head2"
    assert first.leading.end is End.HANDED_OVER


def test_a_leader_that_was_stopped_may_do_nothing_when_it_is_woken_and_ends(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(1.0)
    heads.add("head2")
    heads.run(10.0)
    first.is_stopped = True
    heads.run(60.0)
    first.is_stopped = False

    with pytest.raises(Unsent, match="may not act"):
        first.leading.check()
    heads.run(5.0)
    assert first.leading.end is End.DEPOSED
    assert heads.leader == "head2"


def test_the_timer_ends_a_stopped_leader_after_its_last_act_and_before_another_leads(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(10.0)

    began = heads.time[0]
    assert first.deadlines[-1] is not None
    assert began - 1.0 + ACTS_S <= first.deadlines[-1] <= began + ACTS_S + DEADMAN_S
    assert ACTS_S + DEADMAN_S < TAKE_S


def test_a_leader_that_is_alive_but_may_act_no_more_is_not_ended_by_the_timer(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(10.0)
    heads.time[0] += ACTS_S
    first.leading.spare()

    assert first.deadlines[-1] is None


def test_while_the_database_is_gone_no_head_acts_and_the_leader_goes_on_after_it(heads: Heads) -> None:
    heads.add("head1")
    heads.run(1.0)
    heads.add("head2")
    heads.run(10.0)
    epoch = heads.heads["head1"].leading.leadership().epoch
    _cut_off(heads, "head1", "head2", is_away=True)
    heads.run(60.0)
    assert heads.leader == ""
    assert "could not be renewed" in _refusal(heads, "head1")
    _cut_off(heads, "head1", "head2", is_away=False)
    heads.run(TAKE_S + 1.0)

    assert heads.leader == "head1"
    assert heads.heads["head1"].leading.leadership().epoch == epoch


def test_a_leader_that_is_cut_off_from_the_database_is_followed_by_the_other(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(1.0)
    heads.add("head2")
    heads.run(10.0)
    _cut_off(heads, "head1", is_away=True)
    heads.run(TAKE_S + 1.0)
    assert heads.leader == "head2"
    _cut_off(heads, "head1", is_away=False)
    heads.run(1.0)

    assert first.leading.end is End.DEPOSED


def test_clocks_that_are_apart_change_nothing_and_the_follower_knows_by_how_much(heads: Heads) -> None:
    heads.add("head1", ahead_s=30.0)
    heads.run(1.0)
    second = heads.add("head2")
    heads.run(60.0)

    assert heads.leader == "head1"
    assert second.leading.clock_ahead_s() == pytest.approx(-30.0, abs=1.0)


def test_a_leader_that_cannot_read_slurm_hands_over_to_a_head_that_can(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(1.0)
    second = heads.add("head2")
    second.word = FollowerWord(picture_s=None, trouble="slurmctld does not answer")
    heads.run(20.0)
    first.is_blind = True
    heads.run(30.0)
    assert heads.leader == "head1"  # the other cannot, either

    second.word = FollowerWord(picture_s=1.0)
    heads.run(6.0)
    assert first.leading.end is End.HANDED_OVER
    assert second.leading.is_leader_blind


def test_a_leader_hands_over_to_the_head_beside_slurmctld_after_a_while(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(1.0)
    second = heads.add("head2")
    first.is_beside = False
    second.word = FollowerWord(picture_s=30.0, is_beside_slurmctld=True)
    heads.run(20.0)
    assert first.leading.end is None
    heads.run(_SETTLED_S)

    assert first.leading.end is End.HANDED_OVER


def test_a_follower_that_was_killed_is_not_handed_to(heads: Heads) -> None:
    first = heads.add("head1")
    heads.run(1.0)
    second = heads.add("head2")
    heads.run(20.0)
    second.is_stopped = True
    heads.run(30.0)
    first.is_blind = True
    heads.run(30.0)

    assert first.leading.end is None
    assert [(other.name, other.why_not) for other in first.leading.heads().others] == [("head2", "it is not heard")]


def test_a_head_alone_may_always_act() -> None:
    alone = Alone()
    alone.check()
    assert alone.leadership().is_mine


def _refusal(heads: Heads, name: str) -> str:
    with pytest.raises(Unsent) as found:
        heads.heads[name].leading.check()
    return str(found.value)


def _cut_off(heads: Heads, *names: str, is_away: bool) -> None:
    for name in names:
        heads.heads[name].lease.is_away = is_away
