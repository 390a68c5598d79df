"""A damaged store is set aside and begun anew with what can be read; one bad row costs itself alone."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.mend import Mender, problem_of
from steward.adapters.store.sql import SqlStore
from steward.model.events import Event, Level
from steward.model.group import Cluster, ClusterStatus
from steward.model.ids import Key
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.ports import LedgerQuery, Permanent, Retryable

NOTES = MappingProxyType({f"note:{number}": float(number) for number in range(3000)})
CLUSTER = Cluster(id="c1", name="c", created=1.0, status=ClusterStatus.IN_SERVICE)
WHOLE = Memory(noted=NOTES, next_case=7, cluster=CLUSTER)


class Place:
    """A head's folder; `open` is a start of the head."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "steward.db"
        self.told: list[Event] = []
        self.now = 2_000_000_000.0

    def open(self) -> SqlStore:
        mender = Mender(self.file, self.told.append, lambda: self.now)
        mender.look()
        return SqlStore(open_engine(sqlite_url(self.file)), now=lambda: self.now, mender=mender)

    def bad_files(self) -> list[Path]:
        return sorted(self.file.parent.glob("steward.db.bad-*[0-9]"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With a store that has a few hundred pages, all in the file itself."""
    place = Place(tmp_path)
    store = place.open()
    store.commit(WHOLE, [], [])
    store.add_events([Event(at=place.now, kind="x", text=f"event {number}" * 10) for number in range(3000)])
    store.keep_channel("mail", ChannelState(cursor=2999))
    store._engine.dispose()
    assert not place.told
    return place


def spoil(file: Path, begin: int, size: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(begin)
        opened.write(b"\xa5\x5a garbage" * (size // 10 + 1))


def spoil_each(file: Path, distance: int) -> None:
    for begin in range(8192, file.stat().st_size, distance):
        spoil(file, begin, 4000)


def truncated(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda file: file.write_bytes(b"not a database " * 1000),
    "empty": lambda file: file.write_bytes(b""),
    "truncated": truncated,
    "its first page": lambda file: spoil(file, 0, 4096),
    "a page in the middle": lambda file: spoil(file, file.stat().st_size // 2 // 4096 * 4096, 4096),
    "many pages": lambda file: spoil_each(file, 40960),
    "a table is gone": lambda file: sqlite3.connect(file).executescript("DROP TABLE journal"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_kept_under_another_name_and_a_new_one_works(place: Place, damage: str) -> None:
    DAMAGES[damage](place.file)
    spoilt = place.file.read_bytes()
    assert problem_of(place.file)

    store = place.open()

    (bad,) = place.bad_files()
    assert bad.read_bytes() == spoilt
    (told,) = place.told
    assert (told.kind, told.level) == ("store.damaged", Level.ERROR)
    assert str(place.file) in told.text
    assert bad.name in told.text
    store.commit(Memory(next_case=9), [], place.told)
    assert place.open().load().next_case == 9
    assert not problem_of(place.file)
    assert len(place.bad_files()) == 1


def test_rows_on_sound_pages_are_kept_and_events_are_numbered_on(place: Place) -> None:
    DAMAGES["many pages"](place.file)

    store = place.open()

    events = store.events(limit=5000)
    assert 1000 < len(events) < 3000
    store.add_events(place.told)
    (number, event) = store.events(limit=1)[0]
    assert event.kind == "store.damaged"
    assert number > 2999, "a channel that has read up to 2999 sees it"


def test_a_cluster_is_kept_whole_or_not_at_all_and_does_not_go_with_other_rows(place: Place) -> None:
    """With a slot's row lost, the machine of the slot would be ended as a stray, with the jobs on it."""
    found = [loaded_with(place, begin) for begin in range(4096, place.file.stat().st_size, 3 * 4096)]
    for memory, told in found:
        assert memory.cluster in (None, CLUSTER)
        assert ("the API's cluster" in told) == (memory.cluster is None)
        assert ("nothing that is decided on was lost" in told or not told) == (memory == WHOLE)
    notes_alone = [told for memory, told in found if memory.cluster and memory.noted != NOTES]
    assert notes_alone
    assert [told for told in notes_alone if "set again" in told] == []


def test_where_it_is_not_known_which_rows_are_lost_a_cluster_and_quotas_go(place: Place) -> None:
    """The index of the rows is damaged, too."""
    DAMAGES["many pages"](place.file)
    assert place.open().load().cluster is None
    assert "a pause, the API's cluster with its groups, quotas must be set again" in place.told[0].text


def loaded_with(place: Place, begin: int) -> tuple[Memory, str]:
    """What a head has of it, and says, after one page was spoilt; then the page is sound again."""
    sound = place.file.read_bytes()
    spoil(place.file, begin, 4000)
    place.told.clear()
    found = place.open().load()
    for file in (*place.bad_files(), *place.file.parent.glob("steward.db-*")):
        file.unlink()
    place.file.write_bytes(sound)
    return found, place.told[0].text if place.told else ""


def write_and_read(store: SqlStore) -> None:
    for _ in range(3):
        store.commit(Memory(next_case=8, cluster=CLUSTER), [], [])
        store.events(limit=5000)


def test_a_store_that_is_damaged_under_a_running_head_gets_all_of_memory_from_the_head(place: Place) -> None:
    store = place.open()
    memory = store.load()
    spoil_each(place.file, 8192)
    with pytest.raises(Retryable, match="a new one is begun"):
        write_and_read(store)

    store.commit(memory, [], place.told)

    assert place.open().load() == memory
    assert len(place.bad_files()) == 1
    assert [event.kind for _, event in store.events(limit=1)] == ["store.damaged"]


@pytest.mark.parametrize("there", ["nothing", "an older copy", "garbage"])
def test_a_store_that_is_removed_or_replaced_under_a_running_head_gets_all_of_memory_from_the_head(
    place: Place, there: str
) -> None:
    copy = place.file.read_bytes()
    store = place.open()
    memory = Memory(noted=NOTES, next_case=9, cluster=CLUSTER)
    store.commit(memory, [], [])
    for end in ("", "-wal", "-shm"):
        place.file.with_name(f"{place.file.name}{end}").unlink(missing_ok=True)
    if there != "nothing":
        place.file.write_bytes(copy if there == "an older copy" else b"garbage" * 999)

    store.commit(memory, [], [])

    assert place.open().load() == memory
    told = place.told[-1]
    assert (told.kind, told.level) == ("store.replaced", Level.ERROR)
    assert "stop stewardd first" in told.text
    store.commit(memory, [], [])
    assert [event.kind for event in place.told].count("store.replaced") == 1


def test_a_store_that_cannot_be_set_aside_is_left_as_it_is(place: Place) -> None:
    DAMAGES["garbage"](place.file)
    place.file.with_name("steward.db.new").mkdir()

    with pytest.raises(Permanent, match=r"cannot be set aside.*move"):
        place.open()

    assert place.file.read_bytes() == b"not a database " * 1000
    assert not place.bad_files()


def test_only_a_few_bad_files_are_kept(place: Place) -> None:
    for _ in range(8):
        DAMAGES["garbage"](place.file)
        place.now += 60.0
        place.open()
    assert len(place.bad_files()) == 5
    assert len(place.told) == 8


def test_when_a_file_was_last_set_aside_is_known_also_to_the_next_head(place: Place) -> None:
    assert place.open().set_aside_at() == 0.0
    truncated(place.file)
    place.open()
    place.now += 3600.0
    assert place.open().set_aside_at() == place.now - 3600.0
    (place.file.with_name("steward.db.bad-2")).touch()
    assert place.open().set_aside_at() == place.now - 3600.0, "a file that a person named"


def test_a_locked_or_full_store_is_not_taken_for_a_damaged_one(place: Place) -> None:
    store = place.open()
    other = sqlite3.connect(place.file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert not problem_of(place.file)
    with pytest.raises(Retryable, match="locked"):
        store.commit(Memory(), [], [])
    other.execute("ROLLBACK")
    other.close()
    assert not place.told
    assert not place.bad_files()


@pytest.mark.parametrize("body", ["perhaps", "null", '{"cursor": "x"}', "[" * 100_000])
def test_a_row_that_cannot_be_read_costs_itself_alone(place: Place, body: str) -> None:
    store = place.open()
    with closing(sqlite3.connect(place.file)) as connection, connection:
        connection.execute("UPDATE memory SET body = ? WHERE section = 'next_case' OR section = 'notify'", (body,))
        connection.execute("UPDATE events SET body = ? WHERE seq = 2990", (body,))
        connection.execute("INSERT INTO ledger VALUES ('k', 'run', 1.0, NULL, 1, ?)", (body,))
        connection.execute("INSERT INTO memory VALUES ('used', 'k', ?)", (body,))

    assert store.load() == Memory(noted=NOTES, cluster=CLUSTER)
    assert store.channel("mail") is None
    assert not store.first_use("k", place.now + 5)
    assert store.ledger(LedgerQuery()) == []
    *_, (_, told) = events = store.events(limit=20)
    assert [number for number, _ in events] == [*range(2982, 2990), *range(2991, 3002)]
    assert (told.kind, told.level) == ("store.unreadable", Level.ERROR)
    assert "next_case" in told.text
    store.commit(Memory(noted=NOTES, asked={Key("k"): 1.0}), [], [])


def test_the_stores_files_are_for_their_owner_alone_whatever_the_folder_and_the_umask_allow(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        tmp_path.chmod(0o755)
        place = Place(tmp_path)
        store = place.open()
        store.commit(Memory(next_case=2), [], [])
        DAMAGES["its first page"](place.file)
        place.open().commit(Memory(next_case=3), [], [])
    finally:
        os.umask(before)
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {
        file.name: "0o600" for file in tmp_path.iterdir()
    }
