"""What many users say of jobs at once: nobody's words take the place of another's."""

from dataclasses import replace

from steward.head.waiting import MAX_ASKS_OF_USER, MAX_ASKS_PER_NODE, MAX_OPTED, MAX_TOLD_BY, Asks, Opted
from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.resume_mode import ResumeMode

MODE = ResumeMode.parse("1")
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


def test_made_up_jobs_of_one_node_push_out_no_other_nodes_words() -> None:
    opted = Opted()
    own = replace(OWN, told_by=frozenset({NodeName("n1")}))
    opted.add(own)
    flood = frozenset({NodeName("n9")})
    for number in range(MAX_OPTED + 1000):
        opted.add(replace(OWN, job=JobId(1000 + number), uid=number, told_by=flood))
    assert len(opted.all()) == MAX_OPTED
    assert own in opted.all()
