"""The store's file, whose disk can be full and whose database can be locked by somebody else: SQLite's own errors."""

import shutil
import sqlite3
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sqlalchemy import Connection, Engine, event

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from tests.fakes.world import World


@cache
def _empty() -> bytes:
    """A database with today's tables: migrations are slow."""
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
    holder: sqlite3.Connection | None = None

    @staticmethod
    def new(folder: Path) -> "Disk":
        file = folder / "steward.db"
        file.write_bytes(_empty())
        return Disk(file=file)

    def open(self, world: World) -> SqlStore:
        self.close()
        self.engine = open_engine(sqlite_url(self.file))
        self._listen(self.engine)
        return SqlStore(self.engine, now=lambda: world.now)

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
            most = 1 if self.full else 1_000_000_000
            connection.exec_driver_sql(f"PRAGMA max_page_count={most}")

    def fill(self) -> None:
        """Every page that is left is taken by somebody else; the file cannot grow."""
        self.full = True
        with sqlite3.connect(self.file) as other:
            other.execute("CREATE TABLE IF NOT EXISTS filler (body TEXT)")
            pages = other.execute("PRAGMA freelist_count").fetchone()[0]
            other.executemany("INSERT INTO filler VALUES (?)", [("x" * 3900,)] * pages)
        other.close()

    def free(self) -> None:
        self.full = False
        with sqlite3.connect(self.file) as other:
            other.execute("DROP TABLE IF EXISTS filler")
        other.close()

    def lock(self) -> None:
        self.holder = sqlite3.connect(self.file, isolation_level=None)
        self.holder.execute("BEGIN IMMEDIATE")

    def unlock(self) -> None:
        if self.holder is not None:
            self.holder.execute("ROLLBACK")
            self.holder.close()
            self.holder = None
