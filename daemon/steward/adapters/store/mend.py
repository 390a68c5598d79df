"""Set a damaged SQLite file aside under another name, and begin a new one with every readable row."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sections import TOGETHER
from steward.adapters.store.tables import VERSION, metadata
from steward.model.events import Event, Level
from steward.model.text import cause
from steward.ports import Permanent

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_AT_START = (*_DAMAGE, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT)
"""The codes of damage in a file that is not open yet: "unsupported file format" is one of them."""
_CHECK_S = 10.0
"""The time limit of the check of a whole file. After it the file is used; a bad page is found when it is read."""
_KEPT_FILES = 5
_STAMP, _STAMP_LENGTH = "%Y%m%d-%H%M%S", 15
"""The time in the name of a file that was set aside, and its length."""
_BESIDE = ("-wal", "-shm")
_MOST_GAPS, _LAST_ROW = 10_000, 1 << 62


def is_damage(error: DBAPIError) -> bool:
    """Return whether SQLite says that the file itself is bad; a full disk or a locked file is not."""
    return _result_code(error.orig) in _DAMAGE


def _result_code(error: object) -> int | None:
    """Return SQLite's primary result code."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def problem_of(file: Path) -> str:
    """Return what is damaged in the file; empty where it is sound, absent, or cannot be opened now."""
    try:
        if file.stat().st_size == 0:
            return "the file is empty"
        with closing(sqlite3.connect(file, timeout=1.0)) as connection:
            return _problem_in(connection)
    except OSError:
        return ""
    except sqlite3.Error as error:
        return str(error) if _result_code(error) in _AT_START else ""


def _problem_in(connection: sqlite3.Connection) -> str:
    until = time.monotonic() + _CHECK_S
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    gone = sorted(metadata.tables.keys() - there)
    if VERSION.name in there and gone and connection.execute(f"SELECT 1 FROM {VERSION.name}").fetchone():
        return f"table {gone[0]} is gone"
    connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if found == "ok" else " ".join(found.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """The result of a repair: the bad file's new name, the new file's rows, and the lost sections of memory.

    `lost` is None if it is not known which sections lost rows.
    """

    bad: Path
    rows: int
    lost: frozenset[str] | None


class Mender:
    """The repair of one SQLite file. `tell` gets an event for each repair."""

    def __init__(self, file: Path, tell: Callable[[Event], None], now: Callable[[], float] = time.time) -> None:
        self._file, self._tell, self._now = file, tell, now
        self._used: tuple[int, int] | None = None

    def note_used(self) -> None:
        """Note that the file that has the name now is the one in use."""
        self._used = _identity(self._file)

    def is_used(self) -> bool:
        """Return whether the name still has the file in use, and not another one or none."""
        return self._used is not None and self._used == _identity(self._file)

    def begin_again(self) -> None:
        """Make the file that has the name now ready for use, and tell that it is another one.

        Raises Permanent or Retryable if it cannot be used.
        """
        self.look()
        open_engine(sqlite_url(self._file)).dispose()
        self.note_used()
        text = (
            f"{self._file} was removed or replaced while stewardd ran; all that is decided on is written into the "
            "file that is there now, events and reports of the old one are gone. To use a copy, stop stewardd first"
        )
        self._tell(Event(at=self._now(), kind="store.replaced", level=Level.ERROR, text=text))

    def look(self) -> None:
        """Repair the file, before it is opened, if it is damaged. Raises Permanent if that fails."""
        if problem := problem_of(self._file):
            self.mend(problem)

    def mend(self, problem: str, *, is_remembered: bool = False) -> None:
        """Set the file aside and begin a new one. Raises Permanent if that fails: then the file is as before.

        `is_remembered`: the head has all of memory and writes it again.
        """
        at = self._now()
        try:
            done = _set_aside(self._file, at)
        except (OSError, sqlite3.Error) as error:
            remedy = f"move {self._file}* away: stewardd begins a new one"
            text = f"database {self._file} is damaged ({problem}) and cannot be set aside: {cause(error)}; {remedy}"
            raise Permanent(text) from error
        self._tell(
            Event(at=at, kind="store.damaged", level=Level.ERROR, text=_text(self._file, problem, done, is_remembered))
        )

    def set_aside_at(self) -> float:
        """Return when a file was last set aside, in Unix seconds; 0 if no such file is beside the database."""
        return max(map(_time_in_name, _set_aside_before(self._file)), default=0.0)


def _identity(file: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _set_aside_before(file: Path) -> list[Path]:
    """Return the files that were set aside and are still there, the oldest first."""
    return sorted(file.parent.glob(f"{file.name}.bad-*[0-9]"))


def _time_in_name(bad: Path) -> float:
    """Return the time in the name of a file that was set aside; 0 if a person gave it that name."""
    try:
        return time.mktime(time.strptime(bad.name.partition(".bad-")[2][:_STAMP_LENGTH], _STAMP))
    except (ValueError, OverflowError):
        return 0.0


_SET_AGAIN = (
    ("a pause", frozenset({"paused"})),
    ("the API's cluster with its groups", TOGETHER[0]),
    ("quotas", TOGETHER[1]),
)
"""What a person has to set again if one of these sections lost a row."""


def _text(file: Path, problem: str, done: Salvage, is_remembered: bool) -> str:
    kept = f"it is kept as {done.bad.name}, a new one was begun with {done.rows} of its rows"
    begun = f"{file} was damaged ({problem}): {kept}"
    if is_remembered or done.lost == frozenset():
        return f"{begun}; nothing that is decided on was lost, events and reports may be: check the disk"
    again = [what for what, sections in _SET_AGAIN if done.lost is None or done.lost & sections]
    lost = f"{', '.join(again)} must be set again; " if again else ""
    return f"{begun}; {lost}repairs may be counted anew: check the disk"


def _set_aside(file: Path, at: float) -> Salvage:
    bad = _free_name(file, at)
    new = file.with_name(f"{file.name}.new")
    _remove(new)
    rows, lost = _salvage(file, new, at)
    bad.hardlink_to(file)  # links first: a head that is killed here leaves the file as it was
    log = Path(f"{file}-wal")
    if log.exists() and log.stat().st_size:
        Path(f"{bad}-wal").hardlink_to(log)
    for end in _BESIDE:
        Path(f"{file}{end}").unlink(missing_ok=True)
    new.replace(file)
    for old in _set_aside_before(file)[:-_KEPT_FILES]:
        _remove(old)
    return Salvage(bad=bad, rows=rows, lost=lost)


def _free_name(file: Path, at: float) -> Path:
    stamp = time.strftime(_STAMP, time.localtime(at))
    names = (file.with_name(f"{file.name}.bad-{stamp}{more}") for more in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def _remove(file: Path) -> None:
    for end in ("", *_BESIDE):
        Path(f"{file}{end}").unlink(missing_ok=True)


def _salvage(bad: Path, new: Path, at: float) -> tuple[int, frozenset[str] | None]:
    """Make the new file; return how many rows it has, and the lost sections of memory (see `Salvage`)."""
    open_engine(sqlite_url(new)).dispose()
    with (
        closing(sqlite3.connect(f"file:{bad}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(new, isolation_level=None)) as made,
    ):
        old.text_factory = lambda raw: raw.decode("utf-8", "replace")
        made.execute("BEGIN")
        gaps, rows = {}, 0
        for name, table in metadata.tables.items():
            gaps[name] = [0]
            columns = [column.name for column in table.columns]
            put = f"INSERT OR IGNORE INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            for row in _rows(old, name, columns, gaps[name]):
                rows += made.execute(put, row).rowcount
        lost = _lost_sections(old, made) if gaps["memory"][0] else frozenset[str]()
        _drop_halves(made, lost)
        _go_on_counting(made, at)
        made.execute("COMMIT")
        made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return rows, lost


def _rows(old: sqlite3.Connection, table: str, columns: list[str], gaps: list[int]) -> Iterator[tuple[object, ...]]:
    """Yield the table's rows by number; step over unreadable ones, ever wider until a row can be read."""
    query = f"SELECT rowid, {', '.join(columns)} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    after, step = -1, 1
    while gaps[0] < _MOST_GAPS and after < _LAST_ROW:
        try:
            for number, *row in old.execute(query, (after,)):
                after, step = number, 1
                yield tuple(row)
            return
        except sqlite3.Error:
            gaps[0] += 1
            after, step = after + step, step * 2


def _lost_sections(old: sqlite3.Connection, made: sqlite3.Connection) -> frozenset[str] | None:
    """Return the sections of unreadable rows of memory; None if the index of the rows is damaged, too."""
    try:
        there = set(old.execute("SELECT section, key FROM memory INDEXED BY sqlite_autoindex_memory_1"))
    except sqlite3.Error:
        return None
    read = set(made.execute("SELECT section, key FROM memory"))
    return frozenset(section for section, _ in there - read) if read <= there else None


def _drop_halves(made: sqlite3.Connection, lost: frozenset[str] | None) -> None:
    """Remove each group of `TOGETHER` with a lost section (None: all groups).

    A cluster without some of its slots would end their machines.
    """
    for sections in TOGETHER:
        if lost is None or lost & sections:
            made.executemany("DELETE FROM memory WHERE section = ?", [(section,) for section in sorted(sections)])


def _go_on_counting(made: sqlite3.Connection, at: float) -> None:
    """Set the next numbers of events and journal above all earlier ones, for readers that follow them."""
    for name in ("events", "journal"):
        last = made.execute(f"SELECT max(seq) FROM {name}").fetchone()[0] or 0
        made.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        made.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, max(last, int(at))))
