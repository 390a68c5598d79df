"""Open the database: SQLite in WAL mode by default, or any that SQLAlchemy knows by URL. Make missing tables.

SQLite runs with `synchronous=FULL`: each commit reaches the disk before any action, so that not even a power cut
loses the intent of a launch. That costs one fsync a commit: measured 0.16 ms against 0.01 ms with NORMAL on an NVMe
disk. Commits are one a cycle, so even a slow disk's 5 ms would not be felt.
"""

import contextlib
import math
import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from steward.adapters.store.tables import VERSION, metadata
from steward.ports import Permanent, Retryable

WRITES = {"steward_writes": True}
"""Execution options of a connection that will write: SQLite then locks at once instead of failing half-way."""
_BUSY_MS = 2000
_ANSWER_S = 20.0
"""How long a database's server may take for an answer, unless said."""
_PRIVATE = 0o600
_MYSQL_BOUNDS = ("SET SESSION idle_transaction_timeout = 3", "SET SESSION innodb_lock_wait_timeout = 3")
_POSTGRESQL_BOUNDS = ("SET idle_in_transaction_session_timeout = '3s'", "SET lock_timeout = '3s'")
"""The server ends the transaction of a head whose machine is gone: it would hold the lease's row for hours."""
SHARED = "name a MariaDB in head.database, and move the store there with `steward head move-state`"
_REMEDY = "write DIALECT://USER:PASSWORD@HOST/NAME, with %40, %2F and %3A for @, / and : in the password"
REVISION = "0001"
"""The revision of the tables. A change after a release needs another one, and a step that leads to it."""


def sqlite_url(file: Path) -> str:
    """Return the URL of an SQLite file."""
    return f"sqlite:///{file}"


def open_engine(url: str, *, timeout_s: float = _ANSWER_S) -> Engine:
    """Return an engine whose database has the tables of `REVISION`. A server may take `timeout_s` for an answer.

    Raises Permanent for a bad URL or tables of another revision, Retryable if it cannot be opened or written now.
    """
    engine = _made(url, timeout_s)
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine)
    else:
        _prepare_server(engine)
    _make_tables(engine)
    return engine


def is_file(url: str) -> bool:
    """Return whether the database is an SQLite file, which heads on two hosts cannot share."""
    return _parsed(url).get_backend_name() == "sqlite"


def check_url(url: str) -> None:
    """Raise Permanent if no engine can be made of the URL; nothing is opened."""
    _made(url).dispose()


def _made(url: str, timeout_s: float = _ANSWER_S) -> Engine:
    parsed = _parsed(url)
    try:
        return create_engine(parsed, connect_args=_bounds(parsed, timeout_s))
    except (NoSuchModuleError, ImportError) as error:
        raise Permanent(f"database {_shown(parsed)}: {error}; install the driver of its dialect") from error
    except (ArgumentError, TypeError):  # the error's text quotes what comes after the `?`
        raise Permanent(f"database {_shown(parsed)}: its dialect does not take such a URL; {_REMEDY}") from None


def _bounds(url: URL, timeout_s: float) -> dict[str, Any]:
    """Return the arguments with which a driver gives up a server that does not answer: a machine that is gone."""
    if url.get_driver_name() == "pymysql":
        return dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), math.ceil(timeout_s))
    if url.get_driver_name().startswith("psycopg"):
        return {"connect_timeout": math.ceil(timeout_s), "tcp_user_timeout": math.ceil(timeout_s * 1e3)}
    return {}


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # the error's text may quote a part of the password
        raise Permanent(f"the database's address is not a SQLAlchemy URL: {_REMEDY}") from None


def _shown(url: URL) -> str:
    """Return the URL without the password, even if an unencoded one was taken for another part."""
    plain = URL.create(url.drivername, url.username, None, url.host, url.port, url.database)
    whole = plain.render_as_string()
    return url.drivername if "@" in f"{url.host}{url.database}" else whole


def _make_private(url: URL) -> None:
    """Let only the owner read the database's files, which name every user's jobs."""
    # SQLite has written no row into a new file yet
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            os.chmod(f"{url.database}{end}", _PRIVATE)


def _make_tables(engine: Engine) -> None:
    """Make the tables if they are missing."""
    shown = _shown(engine.url)
    try:
        with engine.execution_options(**WRITES).begin() as connection:
            there = _revision(connection)
            if there is None:
                _make(connection)
            elif there != REVISION:
                raise Permanent(f"database {shown}: its tables are of revision {there}, made by another Steward")
    except (SQLAlchemyError, OSError) as error:
        raise Retryable(f"database {shown} cannot be opened: {_words(error)}") from error


def _words(error: Exception) -> str:
    """Return the driver's words; some drivers give a number before them."""
    driver = getattr(error, "orig", None) or error
    return str(driver.args[-1] if driver.args else driver)


def _revision(connection: Connection) -> str | None:
    """Return the revision of the tables; None for a database without ours, or without all of them."""
    if not inspect(connection).has_table(VERSION.name):
        return None
    return connection.execute(select(VERSION.c.version_num)).scalar()


def _make(connection: Connection) -> None:
    """Make the tables, the revision last."""
    # MariaDB keeps each table as it is made, so an interrupted start continues here; a table with one of these names
    # from before our first start is another program's, and an error
    begun = inspect(connection).has_table(VERSION.name)
    VERSION.create(connection, checkfirst=begun)
    metadata.create_all(connection, checkfirst=begun)
    connection.execute(insert(VERSION).values(version_num=REVISION))


def _prepare_server(engine: Engine) -> None:
    """Bound how long a database's server waits for us, and how long our transactions wait for each other."""
    is_mysql = engine.dialect.name in ("mysql", "mariadb")

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for order in _MYSQL_BOUNDS if is_mysql else _POSTGRESQL_BOUNDS:
            # MySQL has no bound for an idle transaction
            with contextlib.suppress(Exception):
                cursor.execute(order)
        cursor.close()
        connection.commit()


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin and end where we say so
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        connection.execute("PRAGMA journal_mode=WAL")
        _make_private(engine.url)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("steward_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
