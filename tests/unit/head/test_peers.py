"""A head among the heads that `agent.head` names."""

import socket

import pytest

from steward.head import choose
from steward.head.beside import Beside
from steward.head.peers import AmongHeads, place_of
from steward.model.leadership import LeaderWord, Lease
from steward.model.settings import Settings
from steward.ports import Permanent, Retryable


def _place(*heads: str, listen: str = "0.0.0.0:6861") -> AmongHeads:
    return place_of(heads, listen)


def test_a_head_is_the_entry_with_its_address_and_port_and_the_others_are_its_peers() -> None:
    place = _place("203.0.113.1:6861", "127.0.0.1:6861")

    assert (place.name, place.peers) == ("127.0.0.1:6861", ("203.0.113.1:6861",))


def test_two_heads_on_one_host_are_told_apart_by_their_ports() -> None:
    both = ("127.0.0.1:7001", "127.0.0.1:7002")

    assert _place(*both, listen="127.0.0.1:7001").name == both[0]
    assert _place(*both, listen="127.0.0.1:7002").name == both[1]


def test_a_head_that_is_none_of_several_says_so() -> None:
    with pytest.raises(Permanent, match=r"none of these heads is on this host; add this one .*\(6861\)"):
        _place("203.0.113.1:6861", "203.0.113.2:6861")


def test_a_head_alone_behind_another_address_has_its_host_s_name() -> None:
    place = _place("203.0.113.1:6861")

    assert (place.name, place.peers) == (f"{socket.gethostname()}:6861", ())


def test_a_second_head_without_a_database_that_both_can_reach_is_refused_with_the_way_out() -> None:
    for database in ({}, {"database": "sqlite:////var/lib/steward/steward.db"}):
        settings = Settings.model_validate({"head": database})
        with pytest.raises(
            Permanent, match=r"203\.0\.113\.1:6861: two heads need one database; .*steward head move-state"
        ):
            choose.open_lease(settings, ["203.0.113.1:6861"])


@pytest.mark.parametrize(("theirs", "ours"), [("", "blue"), ("blue", "blue"), ("blue", "")])
def test_a_database_without_another_cluster_s_state_is_taken(theirs: str, ours: str) -> None:
    choose.check_cluster(Lease(word=LeaderWord(cluster=theirs)), ours)


def test_the_database_of_another_cluster_is_refused_with_the_way_out() -> None:
    with pytest.raises(Permanent, match=r"the state of another cluster, red: name one for blue alone"):
        choose.check_cluster(Lease(word=LeaderWord(cluster="red")), "blue")


def test_a_head_alone_with_a_file_has_no_lease() -> None:
    assert choose.open_lease(Settings.model_validate({}), []) is None


@pytest.mark.parametrize(
    ("answer", "is_beside"), [("head1", True), ("head1.example.org", True), ("head2", False), ("", False)]
)
def test_slurmctld_is_beside_a_head_on_the_host_that_is_in_control(answer: str, is_beside: bool) -> None:
    beside = Beside(lambda: answer, frozenset({"head1"}))
    beside.ask()

    assert beside() is is_beside


def test_without_an_answer_of_slurm_the_last_one_stays() -> None:
    answers = ["head1"]

    def ask() -> str:
        if not answers:
            raise Retryable("slurmctld does not answer")
        return answers.pop()

    beside = Beside(ask, frozenset({"head1"}))
    beside.ask()
    beside.ask()

    assert beside()
