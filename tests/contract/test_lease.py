"""What every LeasePort promises, and the fence of the leader's store, on SQLite and on a real MariaDB."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Engine

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.lease import SqlLease
from steward.adapters.store.sql import SqlStore
from steward.model.events import Event
from steward.model.leadership import FollowerWord, LeaderWord
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.ports import Deposed

WORD = LeaderWord(at=5.0, since=4.0, version="1.0")


@dataclass
class LeaseWorld:
    """One database; `connect` is another head's way to it."""

    connect: Callable[[], Engine]

    def lease(self) -> SqlLease:
        return SqlLease(self.connect())


@pytest.fixture(params=["sqlite", "mariadb"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LeaseWorld]:
    url = sqlite_url(tmp_path / "lease.db")
    if request.param == "mariadb":
        url = request.getfixturevalue("mariadb").database()
    engines: list[Engine] = []

    def connect() -> Engine:
        engines.append(open_engine(url))
        return engines[-1]

    yield LeaseWorld(connect)
    for engine in engines:
        engine.dispose()


def test_a_new_lease_is_free_and_taken(world: LeaseWorld) -> None:
    lease = world.lease()
    assert lease.read().leader == ""

    taken = lease.take(lease.read(), "head1:6861", WORD)

    assert taken is not None
    assert (taken.leader, taken.word) == ("head1:6861", WORD)
    assert world.lease().read() == taken


def test_an_epoch_is_as_large_as_the_time_so_that_one_of_a_new_database_is_larger(world: LeaseWorld) -> None:
    """Agents refuse an earlier epoch than they have seen."""
    lease = world.lease()

    taken = lease.take(lease.read(), "head1", LeaderWord(at=1_700_000_000.5))

    assert taken is not None
    assert taken.epoch == 1_700_000_000


def test_of_two_heads_that_saw_the_same_one_takes_it(world: LeaseWorld) -> None:
    first, second = world.lease(), world.lease()
    seen = first.read()

    assert first.take(seen, "head1", WORD) is not None
    assert second.take(seen, "head2", WORD) is None
    assert second.read().leader == "head1"


def test_each_renewal_is_a_change_and_keeps_the_epoch(world: LeaseWorld) -> None:
    lease, other = world.lease(), world.lease()
    lease.take(lease.read(), "head1", WORD)
    before = other.read()

    lease.renew(WORD)

    assert other.read().beat > before.beat
    assert other.read().epoch == before.epoch
    assert other.take(before, "head2", WORD) is None


def test_a_leader_whose_lease_was_taken_is_told_at_its_next_renewal(world: LeaseWorld) -> None:
    first, second = world.lease(), world.lease()
    first.take(first.read(), "head1", WORD)
    second.take(second.read(), "head2", WORD)

    with pytest.raises(Deposed, match=r"head2 has taken the lead \(epoch 6\)"):
        first.renew(WORD)
    with pytest.raises(Deposed):
        first.renew(WORD)


def test_a_released_lease_is_free_and_its_next_epoch_is_later(world: LeaseWorld) -> None:
    first, second = world.lease(), world.lease()
    first.take(first.read(), "head1", WORD)
    first.release()

    assert second.read().leader == ""
    taken = second.take(second.read(), "head2", WORD)
    assert taken is not None
    assert taken.epoch == 6


def test_a_release_by_a_head_that_was_deposed_changes_nothing(world: LeaseWorld) -> None:
    first, second = world.lease(), world.lease()
    first.take(first.read(), "head1", WORD)
    second.take(second.read(), "head2", WORD)

    first.release()

    assert second.read().leader == "head2"


def test_a_follower_s_word_is_its_last_one(world: LeaseWorld) -> None:
    lease, other = world.lease(), world.lease()
    lease.tell("head2", FollowerWord(beat=1, trouble="no picture"))
    lease.tell("head2", FollowerWord(beat=2, picture_s=3.0, version="1.0", is_beside_slurmctld=True))

    assert other.followers() == {"head2": FollowerWord(beat=2, picture_s=3.0, version="1.0", is_beside_slurmctld=True)}


def _store(world: LeaseWorld, lease: SqlLease) -> SqlStore:
    return SqlStore(world.connect(), fence=lease.fence)


def test_a_deposed_leader_writes_nothing_at_all(world: LeaseWorld) -> None:
    first, second = world.lease(), world.lease()
    old, new = _store(world, first), _store(world, second)
    first.take(first.read(), "head1", WORD)
    old.commit(Memory(next_case=5), [], [])
    second.take(second.read(), "head2", WORD)
    new.commit(Memory(next_case=7), [], [])

    writes: list[Callable[[], object]] = [
        lambda: old.commit(Memory(next_case=6), [], []),
        lambda: old.record_outcomes({}, 1.0),
        lambda: old.add_events([Event(at=1.0, kind="x", text="late")]),
        lambda: old.keep_channel("mail", ChannelState(cursor=0)),
        lambda: old.first_use("signature", 10.0),
    ]
    for write in writes:
        with pytest.raises(Deposed, match="head2"):
            write()

    assert new.load() == Memory(next_case=7)
    assert new.events() == []
    assert new.channel("mail") is None


def test_a_follower_reads_and_writes_nothing(world: LeaseWorld) -> None:
    first, second = world.lease(), world.lease()
    first.take(first.read(), "head1", WORD)
    _store(world, first).commit(Memory(next_case=5), [], [])
    follower = _store(world, second)

    assert follower.load() == Memory(next_case=5)
    with pytest.raises(Deposed, match="does not lead"):
        follower.commit(Memory(next_case=6), [], [])


def test_no_head_takes_the_lease_in_the_middle_of_a_write(world: LeaseWorld) -> None:
    """A head that died in the middle of a write holds the row until the server gives its connection up."""
    first, second = world.lease(), world.lease()
    first.take(first.read(), "head1", WORD)
    seen, order = second.read(), list[str]()

    def take() -> None:
        if second.take(seen, "head2", WORD) is not None:
            order.append("taken")

    engine = world.connect()
    with engine.execution_options(steward_writes=True).begin() as connection:
        first.fence(connection)
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(0.3)
        order.append("written")
    thread.join(20.0)

    assert order == ["written", "taken"]
