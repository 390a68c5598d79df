"""Who may wait to prove itself where many want to."""

from dataclasses import dataclass

from steward.head.hub import Greeting


@dataclass(eq=False)
class Peer:
    closed: str = ""
    has_spoken: bool = True

    def close(self, why: str) -> None:
        self.closed = why


def full(*hosts: str) -> tuple[Greeting[Peer], list[Peer]]:
    greeting: Greeting[Peer] = Greeting(most=len(hosts))
    peers = [Peer() for _ in hosts]
    assert all(greeting.enter(peer, host) for peer, host in zip(peers, hosts, strict=True))
    return greeting, peers


def test_one_address_that_takes_every_place_keeps_nobody_else_out() -> None:
    greeting, peers = full("10.0.0.6", "10.0.0.6", "10.0.0.6")
    newcomer = Peer()
    assert greeting.enter(newcomer, "10.0.0.1")
    assert [peer.closed for peer in peers] == ["", "", "too many connections from its address"]
    assert set(greeting.links) == {*peers[:2], newcomer}


def test_it_takes_no_more_places_itself() -> None:
    greeting, peers = full("10.0.0.6", "10.0.0.6", "10.0.0.1")
    assert not greeting.enter(Peer(), "10.0.0.6")
    assert set(greeting.links) == set(peers)


def test_at_an_address_that_takes_every_place_who_speaks_comes_through() -> None:
    """Any user of a node can hold connections from its address; its agent says its hello at once."""
    greeting: Greeting[Peer] = Greeting(most=4)
    spoke = Peer()
    idle = [Peer(has_spoken=False) for _ in range(3)]
    assert all(greeting.enter(peer, "10.0.0.6") for peer in (spoke, *idle))
    agent = Peer(has_spoken=False)
    assert greeting.enter(agent, "10.0.0.6")
    agent.has_spoken = True
    assert all(greeting.enter(Peer(has_spoken=False), "10.0.0.6") for _ in range(20))
    assert {spoke, agent} <= set(greeting.links)
    assert [peer.closed != "" for peer in idle] == [True, True, True]
    assert len(greeting) == 4


def test_where_all_have_as_many_the_newcomer_waits() -> None:
    greeting, peers = full("10.0.0.1", "10.0.0.2")
    assert not greeting.enter(Peer(), "10.0.0.1")
    assert not greeting.enter(Peer(), "10.0.0.3")
    assert [peer.closed for peer in peers] == ["", ""]


def test_who_has_left_makes_room() -> None:
    greeting, peers = full("10.0.0.1", "10.0.0.1")
    greeting.leave(peers[0])
    assert greeting.enter(Peer(), "10.0.0.1")


def test_when_many_wait_an_address_has_few_places() -> None:
    greeting: Greeting[Peer] = Greeting(most=6, freely=3, few=2)
    assert all(greeting.enter(Peer(), "10.0.0.6") for _ in range(3))
    assert not greeting.enter(Peer(), "10.0.0.6")
    assert all(greeting.enter(Peer(), "10.0.0.1") for _ in range(2))
    assert len(greeting) == 5
    assert not greeting.enter(Peer(), "10.0.0.1")
    assert greeting.enter(Peer(), "10.0.0.2")
    assert not greeting.enter(Peer(), "10.0.0.6"), "all places are taken"
