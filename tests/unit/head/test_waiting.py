"""What many users say of jobs at once: nobody's words take the place of another's."""

from dataclasses import replace
from typing import Any

import pytest

from steward.head import waiting
from steward.head.waiting import (
    MAX_ASKS_OF_USER,
    MAX_ASKS_PER_NODE,
    MAX_OPTED_OF_NODE,
    MAX_TOLD_BY,
    MAX_TOLD_LEFT,
    Asks,
    Opted,
)
from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.ids import AskId, BootId, JobId, NodeName
from steward.model.job_report import Lean, LogSign
from steward.model.resume_mode import ResumeMode

MODE = ResumeMode.parse("1")
SIGN = LogSign(sign="user.python", lean=Lean.USER, strong=True, line="KeyError: 'x'", order=0)
OWN = OptedIn(job=JobId(7), uid=1000, mode=MODE, restart=0, at=1.0)


def an_ask(number: int, uid: int = 1000) -> Ask:
    return Ask(
        id=AskId(f"n1-{number}"),
        kind=AskKind.STEP,
        job=JobId(7),
        step="0",
        node=NodeName("n1"),
        uid=uid,
        mode=MODE,
        attempt=1,
        restart=0,
        status=256,
        at=1.0,
    )


def test_the_signs_of_an_output_that_took_long_to_read_complete_the_ask_and_change_nothing_else() -> None:
    asks: Asks[str] = Asks()
    first = replace(an_ask(1), is_reading=True)
    assert asks.add(first, "link")
    assert asks.add(replace(an_ask(1), signs=(SIGN,), at=2.0, uid=1001), "link")
    whole = replace(an_ask(1), signs=(SIGN,))
    assert asks.all() == (whole,)
    assert asks.add(an_ask(1), "new link")
    assert asks.all() == (whole,)
    assert asks.take(whole.id) == "new link"


def test_who_calls_anothers_job_his_does_not_hide_its_owners_word() -> None:
    opted = Opted()
    opted.add(OWN)
    assert opted.add(replace(OWN, uid=1001, mode=ResumeMode.parse("0"), at=2.0))
    assert OWN in opted.all()


def test_a_word_that_is_told_again_is_no_news_and_a_later_run_is() -> None:
    opted = Opted()
    assert opted.add(OWN)
    assert not opted.add(replace(OWN, at=2.0))
    assert opted.add(replace(OWN, restart=1, at=3.0))
    assert [one.restart for one in opted.all()] == [0, 1]


def test_of_jobs_that_are_gone_the_words_of_all_are_forgotten() -> None:
    opted = Opted()
    opted.add(OWN)
    opted.add(replace(OWN, uid=1001))
    opted.forget((), now=1000.0)
    assert opted.all() == ()


def test_the_asks_of_one_user_leave_room_for_those_of_others() -> None:
    asks: Asks[str] = Asks()
    assert all(asks.add(an_ask(number), "link") for number in range(MAX_ASKS_OF_USER))
    assert not asks.add(an_ask(1000), "link")
    assert asks.add(an_ask(1001, uid=1001), "link")


def test_a_nodes_asks_are_bounded_whoever_they_are_of_and_answered_ones_make_room() -> None:
    asks: Asks[str] = Asks()
    for number in range(MAX_ASKS_PER_NODE):
        assert asks.add(an_ask(number, uid=number), "link")
    assert not asks.add(an_ask(9999, uid=9999), "link")
    asks.take(AskId("n1-3"))
    assert asks.add(an_ask(9999, uid=9999), "link")


def test_no_node_takes_an_ask_over_by_its_id() -> None:
    asks: Asks[str] = Asks()
    assert asks.add(an_ask(1), "link of n1")
    assert not asks.add(replace(an_ask(1), node=NodeName("n2")), "link of n2")
    assert asks.take(AskId("n1-1")) == "link of n1"


def test_every_node_that_tells_of_a_job_is_known_but_not_without_end() -> None:
    opted = Opted()
    tellers = [NodeName(f"n{number}") for number in range(MAX_TOLD_BY + 2)]
    for node in tellers:
        opted.add(replace(OWN, told_by=frozenset({node})))
    assert [one.told_by for one in opted.all()] == [frozenset(tellers[:MAX_TOLD_BY])]
    assert not opted.add(replace(OWN, told_by=frozenset({tellers[0]})))


def test_a_lie_about_a_jobs_run_or_mode_does_not_hide_the_word_of_its_node() -> None:
    opted = Opted()
    n1, n9 = frozenset({NodeName("n1")}), frozenset({NodeName("n9")})
    for lie in (replace(OWN, restart=10**6), replace(OWN, mode=ResumeMode.parse("0"))):
        opted.add(replace(lie, told_by=n9))
    assert opted.add(replace(OWN, told_by=n1))
    assert replace(OWN, told_by=n1) in opted.all()


def told(node: str, **other: Any) -> OptedIn:
    return replace(OWN, told_by=frozenset({NodeName(node)}), **other)


def test_what_a_node_says_anew_of_a_users_job_takes_the_place_of_what_it_said() -> None:
    opted = Opted()
    opted.add(told("n1"))
    for most in range(1, 100):
        assert opted.add(told("n9", mode=ResumeMode.parse(f"1,max={most}")))
    assert opted.all() == (told("n1"), told("n9", mode=ResumeMode.parse("1,max=99")))
    assert not opted.add(told("n9", mode=ResumeMode.parse("1,max=99")))


def test_a_node_that_says_something_else_leaves_the_word_to_the_others_who_told_it() -> None:
    opted = Opted()
    for node in ("n1", "n2"):
        opted.add(told(node))
    assert opted.add(told("n2", restart=1))
    assert opted.all() == (told("n1"), told("n2", restart=1))
    assert opted.add(told("n1", restart=1))
    assert opted.all() == (replace(OWN, restart=1, told_by=frozenset({NodeName("n1"), NodeName("n2")})),)


def test_that_a_step_runs_is_known_from_whichever_node_tells_it() -> None:
    opted = Opted()
    opted.add(told("n1"))
    assert opted.add(told("n2", has_steps=True))
    assert not opted.add(told("n2", has_steps=True))
    assert not opted.add(told("n2"))
    assert [one.has_steps for one in opted.all()] == [True]
    assert opted.add(told("n3", has_steps=True, has_detached=True))
    assert not opted.add(told("n2", has_steps=True))
    assert [one.has_detached for one in opted.all()] == [True]


def began(node: str, boot: str) -> frozenset[tuple[NodeName, BootId]]:
    return frozenset({(NodeName(node), BootId(boot))})


def test_where_and_in_which_boot_a_script_began_is_known_however_many_nodes_tell_of_its_job() -> None:
    opted = Opted()
    for number in range(MAX_TOLD_BY):
        opted.add(told(f"n{number}"))
    assert opted.add(told("n9", began_in=began("n9", "boot-1")))
    assert not opted.add(told("n9", began_in=began("n9", "boot-1")))
    assert not opted.add(told("n9"))
    assert [one.began_in for one in opted.all()] == [began("n9", "boot-1")]
    assert opted.add(told("n9", began_in=began("n9", "boot-2")))
    assert [one.began_in for one in opted.all()] == [began("n9", "boot-2")]


def test_lies_on_where_a_script_began_are_known_but_not_without_end_and_hide_no_word_that_was_there() -> None:
    opted = Opted()
    for number in range(MAX_TOLD_BY + 2):
        opted.add(told(f"n{number}", began_in=began(f"n{number}", "boot-1")))
    (known,) = opted.all()
    assert len(known.began_in) == MAX_TOLD_BY
    assert began("n0", "boot-1") < known.began_in


def test_with_a_nodes_word_on_a_run_goes_where_its_script_began() -> None:
    opted = Opted()
    for node in ("n1", "n2"):
        opted.add(told(node, began_in=began(node, "boot-1")))
    opted.add(told("n2", restart=1))
    assert [one.began_in for one in opted.all()] == [began("n1", "boot-1"), frozenset()]


def test_what_earlier_attempts_left_is_known_from_each_node_that_tells_it() -> None:
    opted = Opted()
    opted.add(told("n1"))
    assert opted.add(told("n2", left="n2: 12 redis-server"))
    assert not opted.add(told("n2", left="n2: 12 redis-server"))
    assert opted.add(told("n1", left="n1: 7 python3"))
    assert [one.left for one in opted.all()] == ["n2: 12 redis-server; n1: 7 python3"]
    for pid in range(1000):
        opted.add(told("n1", left=f"n1: {pid} python3"))
    assert len(opted.all()[0].left) <= MAX_TOLD_LEFT


def test_of_a_node_that_says_too_much_the_user_with_the_most_words_is_cut() -> None:
    opted = Opted()
    opted.add(told("n9"))
    for number in range(MAX_OPTED_OF_NODE + 100):
        opted.add(told("n9", job=JobId(1000 + number), uid=1001))
    assert len(opted.all()) == MAX_OPTED_OF_NODE
    assert opted.all()[0] == told("n9")
    assert {one.job for one in opted.all()[1:]} == set(range(1101, 1100 + MAX_OPTED_OF_NODE))


def test_made_up_jobs_of_one_node_push_out_no_other_nodes_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_OPTED", 200)
    opted = Opted()
    opted.add(told("n1"))
    for number in range(300):
        opted.add(told("n9", job=JobId(1000 + number), uid=number))
    assert len(opted.all()) == 200
    assert told("n1") in opted.all()
