"""What every MungePort does: the fake, and libmunge with a munged of our own."""

import asyncio
import contextlib
import itertools
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steward.adapters.munge import Munge
from steward.adapters.node.probe import LocalProbes
from steward.adapters.offload import Threads
from steward.adapters.wire.seal import Sealer
from steward.checks.check import Facts, Judgement, Past
from steward.checks.limits import Limits
from steward.checks.services import MUNGE
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.probe import AskMunge
from steward.ports import MungePort, Permanent, Retryable, WrongClock
from tests.contract.munged import a_munged, is_installed, short_lived
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.wires import HELLO, TERMS, greet_agent, greet_head, stream_pair


@dataclass
class Realm:
    """Two processes of one cluster, one of another, and one whose munged is away."""

    here: MungePort
    there: MungePort
    stranger: MungePort
    alone: MungePort


@pytest.fixture(scope="module")
def sockets() -> Iterator[tuple[Path, Path]]:
    if not is_installed():
        pytest.skip("munged is not installed")
    with a_munged() as ours, a_munged() as other:
        yield ours, other


@pytest.fixture(params=["fake", "libmunge"])
def realm(request: pytest.FixtureRequest, tmp_path: Path) -> Realm:
    if request.param == "fake":
        ours, uid = FakeMunged(), os.getuid()
        strange, away = FakeMunge(FakeMunged(numbers=itertools.count(100)), uid), FakeMunge(FakeMunged(up=False), uid)
        return Realm(here=FakeMunge(ours, uid), there=FakeMunge(ours, uid), stranger=strange, alone=away)
    mine, other = request.getfixturevalue("sockets")
    here, there, stranger = (Munge(str(socket)) for socket in (mine, mine, other))
    return Realm(here=here, there=there, stranger=stranger, alone=Munge(str(tmp_path / "nothing")))


def test_a_credential_tells_who_made_it_and_what_for(realm: Realm) -> None:
    payload = bytes(range(256))
    assert realm.there.decode(realm.here.encode(payload)) == (os.getuid(), payload)


def test_an_empty_payload_is_carried_as_well(realm: Realm) -> None:
    assert realm.there.decode(realm.here.encode(b"")) == (os.getuid(), b"")


def test_a_credential_is_read_once(realm: Realm) -> None:
    credential = realm.here.encode(b"once")
    realm.there.decode(credential)
    with pytest.raises(Permanent):
        realm.there.decode(credential)


@pytest.mark.parametrize("forged", ["", "MUNGE:", "MUNGE:AwQDAAAB:", "nonsense", "MUNGE:\u00fc:"])
def test_what_munged_did_not_make_is_refused(realm: Realm, forged: str) -> None:
    with pytest.raises(Permanent):
        realm.there.decode(forged)


def test_a_credential_of_another_cluster_is_refused(realm: Realm) -> None:
    with pytest.raises(Permanent):
        realm.here.decode(realm.stranger.encode(b"x"))


def munge_check(path: Path) -> Judgement:
    """What the check says of the munged behind this socket."""
    probes = LocalProbes(skew_s=lambda: None, munge=lambda: Munge(str(path)))
    facts = Facts(node=NodeName("n1"), limits=Limits())
    return MUNGE.judge((probes.look(AskMunge()),), facts, Past())


def test_a_munged_whose_socket_a_program_holds_is_late_and_no_dead_one(tmp_path: Path) -> None:
    """Any user can: its two threads wait 2 s for each connection that says nothing."""
    if not is_installed():
        pytest.skip("munged is not installed")
    with a_munged() as path, contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
        assert munge_check(path).outcome is Outcome.UNKNOWN
    assert munge_check(tmp_path / "nothing").is_bad


def test_a_wrong_key_is_named_as_such(sockets: tuple[Path, Path]) -> None:
    here, stranger = (Munge(str(socket)) for socket in sockets)
    with pytest.raises(Permanent, match=r"another MUNGE key: /etc/munge/munge\.key must be the same"):
        here.decode(stranger.encode(b"x"))


def test_both_sides_of_a_connection_name_a_wrong_key(sockets: tuple[Path, Path]) -> None:
    """By the handshake of an agent and a head that have a key each."""

    async def story() -> list[object]:
        ours, theirs = (Sealer(Munge(str(socket)), frozenset({os.getuid()}), Threads(4)) for socket in sockets)
        async with stream_pair() as (head, agent):
            sides = greet_agent(*head, ours, TERMS), greet_head(*agent, theirs, HELLO)
            return list(await asyncio.gather(*sides, return_exceptions=True))

    for error in asyncio.run(story()):
        assert isinstance(error, Permanent)
        assert "made with another MUNGE key" in str(error)


def test_without_munged_it_may_be_tried_again_later(realm: Realm) -> None:
    with pytest.raises(Retryable, match="is munged running"):
        realm.alone.encode(b"x")
    with pytest.raises(Retryable, match="is munged running"):
        realm.alone.decode("MUNGE:AwQDAAAB:")


def test_a_credential_past_its_time_is_refused_and_one_within_it_is_not(sockets: tuple[Path, Path]) -> None:
    munge = Munge(str(sockets[0]))
    assert munge.decode(short_lived(sockets[0], "in time", ttl_s=60)) == (os.getuid(), b"in time")
    old = short_lived(sockets[0], "too late", ttl_s=1)
    time.sleep(2.1)  # whole seconds are compared, by the real clock of munged
    with pytest.raises(WrongClock, match=r"(?i)expired.*the clocks of the two machines differ") as late:
        munge.decode(old)
    assert (late.value.uid, late.value.payload) == (os.getuid(), b"too late")
    assert 2.0 <= late.value.behind_s <= 10.0


def test_a_replay_by_another_process_of_the_node_is_refused_as_well(sockets: tuple[Path, Path]) -> None:
    first, second = Munge(str(sockets[0])), Munge(str(sockets[0]))
    credential = first.encode(b"once")
    second.decode(credential)
    with pytest.raises(Permanent, match=r"(?i)replay"):
        first.decode(credential)


def test_a_credential_for_one_user_is_read_by_nobody_else(realm: Realm) -> None:
    assert realm.there.decode(realm.here.encode(b"key", os.getuid())) == (os.getuid(), b"key")
    with pytest.raises(Permanent):
        realm.there.decode(realm.here.encode(b"key", os.getuid() + 1))
