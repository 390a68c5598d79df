"""A StorePort of each kind, with the means to restart it and to break it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.ports import StorePort
from tests.contract.mariadb import MariaDb
from tests.fakes.store import FakeStore


@dataclass(kw_only=True)
class StoreWorld:
    """`reopen` is a restart of the head: another store on the same state. After `break_off` large commits fail, and
    small ones too until `mend`."""

    store: StorePort
    reopen: Callable[[], StorePort]
    break_off: Callable[[], None]
    mend: Callable[[], None] = lambda: None
    clock: list[float] = field(default_factory=lambda: [1000.0])


def on_fake(clock: list[float]) -> StoreWorld:
    fake = FakeStore(now=lambda: clock[0])
    break_off = partial(setattr, fake, "broken", "the disk is full")
    return StoreWorld(store=fake, reopen=lambda: fake, break_off=break_off, clock=clock)


def on_mariadb(server: MariaDb, clock: list[float]) -> Iterator[StoreWorld]:
    url = server.database()
    engines: list[Engine] = []

    def reopen() -> StorePort:
        engines.append(open_engine(url))
        return SqlStore(engines[-1], now=lambda: clock[0])

    break_off, mend = (partial(server.order, f"SET GLOBAL read_only = {value}") for value in (1, 0))
    yield StoreWorld(store=reopen(), reopen=reopen, break_off=break_off, mend=mend, clock=clock)
    mend()
    for engine in engines:
        engine.dispose()


def on_sqlite(file: Path, clock: list[float]) -> Iterator[StoreWorld]:
    engine = open_engine(sqlite_url(file))

    def full() -> None:
        with engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    def reopen() -> StorePort:
        return SqlStore(open_engine(sqlite_url(file)), now=lambda: clock[0])

    yield StoreWorld(store=SqlStore(engine, now=lambda: clock[0]), reopen=reopen, break_off=full, clock=clock)
    engine.dispose()
