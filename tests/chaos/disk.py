"""The store's file: its disk can be full, and its database locked by somebody else (that is SQLite's own doing)."""

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.mend import Mender
from steward.adapters.store.sql import SqlStore
from steward.model.events import Event
from steward.ports import Retryable
from tests.fakes.world import World


@cache
def _empty() -> bytes:
    """A database with its tables, to copy: making them is slow."""
    folder = Path(mkdtemp(prefix="steward-chaos-"))
    try:
        open_engine(sqlite_url(folder / "empty.db")).dispose()
        return (folder / "empty.db").read_bytes()
    finally:
        shutil.rmtree(folder)


@dataclass(slots=True, kw_only=True)
class Disk:
    """`file` is the database. `open` gives a store on it as a new process would have."""

    file: Path
    full: bool = False
    engine: Engine | None = None
    left: Engine | None = None
    """Of the process that this one is a copy of, and not ours to close."""
    holder: sqlite3.Connection | None = None
    tell: Callable[[Event], None]
    """Of a damaged file that was mended."""

    @staticmethod
    def new(folder: Path, tell: Callable[[Event], None]) -> "Disk":
        file = folder / "steward.db"
        file.write_bytes(_empty())
        return Disk(file=file, tell=tell)

    def open(self, world: World, fence: Callable[[Connection], None] = lambda connection: None) -> SqlStore:
        self.close()
        if self.holder is not None:  # SQLite would say so after two seconds
            raise Retryable("database is locked")
        mender = Mender(self.file, self.tell, now=lambda: world.now)
        mender.look()
        self.engine = open_engine(sqlite_url(self.file))
        self._listen(self.engine)
        return SqlStore(self.engine, now=lambda: world.now, mender=mender, fence=fence)

    def move(self, folder: Path) -> None:
        """Go on with a copy of the file, in a process that is a copy itself."""
        self.left, self.engine = self.engine, None
        for name in (self.file.name, f"{self.file.name}-wal"):
            if (self.file.parent / name).exists():
                shutil.copy(self.file.parent / name, folder / name)
        self.file = folder / self.file.name

    def close(self) -> None:
        if self.engine is not None:
            self.engine.dispose()
            self.engine = None

    def _listen(self, engine: Engine) -> None:
        @event.listens_for(engine, "connect")
        def connect(connection: sqlite3.Connection, _record: Any) -> None:
            connection.execute("PRAGMA busy_timeout=1")
            connection.execute("PRAGMA synchronous=OFF")  # no power is cut here, and each fsync costs

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            if self.full and connection.get_execution_options().get("steward_writes"):
                full = sqlite3.OperationalError("database or disk is full")
                raise OperationalError("BEGIN IMMEDIATE", None, full)

        engine.dispose()  # connections made before have none of this

    @property
    def is_writable(self) -> bool:
        return not self.full and self.holder is None

    def fill(self) -> None:
        """The write-ahead log cannot grow: no write goes through, reads do."""
        self.full = True

    def free(self) -> None:
        self.full = False

    def damage(self) -> None:
        """Every page of the file, under a head that runs."""
        if self.engine is not None:
            self.engine.dispose()  # the pages that a connection knows, it does not read again
        self.file.write_bytes(b"\xff" * self.file.stat().st_size)

    def lock(self) -> None:
        self.unlock()
        holder = sqlite3.connect(self.file, isolation_level=None)
        try:
            holder.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError:  # it was damaged, and no head has set it aside yet: nobody can lock it
            holder.close()
        else:
            self.holder = holder

    def unlock(self) -> None:
        if self.holder is not None:
            self.holder.execute("ROLLBACK")
            self.holder.close()
            self.holder = None
