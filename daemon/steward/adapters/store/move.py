"""Move a head's state from its SQLite file to the database that several heads share: copied, counted, compared."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, Table, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from steward.adapters.store import rows
from steward.adapters.store.engine import WRITES
from steward.adapters.store.tables import events, journal, ledger, memory
from steward.ports import Permanent, Retryable

_TABLES = (memory, journal, events, ledger)
_AT_ONCE = 1000


def move(source: Engine, target: Engine, texts: Mapping[str, str]) -> Mapping[str, int]:
    """Copy all rows, and the texts of providers by name, in one transaction; return the number of rows of each table.

    The source stays as it is. Raises Permanent if the target holds a state, or if what was copied differs; then the
    target is empty as before. Raises Retryable if a database fails.
    """
    with _named(source, target), source.begin() as there:
        with target.execution_options(**WRITES).begin() as here:
            for table in _TABLES:
                if _count(here, table):
                    raise Permanent(f"{_shown(target)} holds a state already: name an empty database")
            counts = {table.name: _copy(there, here, table) for table in _TABLES}
            for name, told in texts.items():
                rows.keep_text(here, name, told)
            _compare(there, here, counts)
        return counts


def _copy(there: Connection, here: Connection, table: Table) -> int:
    """Copy the rows of one table; return their number."""
    count = 0
    found = there.execution_options(yield_per=_AT_ONCE).execute(select(table))
    for some in found.mappings().partitions(_AT_ONCE):
        here.execute(insert(table), [dict(row) for row in some])
        count += len(some)
    if here.dialect.name == "postgresql" and "seq" in table.c and count:
        # Rows that came with their numbers do not move the counter on.
        here.execute(text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), max(seq)) FROM {table.name}"))
    return count


def _compare(there: Connection, here: Connection, counts: Mapping[str, int]) -> None:
    """Raise Permanent unless the copy has as many rows, and its memory and open intents read the same."""
    texts = here.execute(select(func.count()).select_from(memory).where(memory.c.section == rows.TEXT)).scalar() or 0
    texts -= there.execute(select(func.count()).select_from(memory).where(memory.c.section == rows.TEXT)).scalar() or 0
    for table in _TABLES:
        has = _count(here, table) - (texts if table is memory else 0)
        if has != counts[table.name]:
            raise Permanent(f"table {table.name}: {counts[table.name]} rows were read, and {has} are in the copy")
    if rows.memory(there) != rows.memory(here) or rows.open_keys(there) != rows.open_keys(here):
        raise Permanent("the memory reads otherwise in the copy: is the database's character set utf8mb4 (UTF8)?")


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar() or 0


def _shown(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def _named(*engines: Engine) -> Iterator[None]:
    """Raise Retryable, with the databases' names, for a failure of one of them."""
    try:
        yield
    except SQLAlchemyError as error:
        driver = getattr(error, "orig", None) or error
        raise Retryable(f"from {' to '.join(map(_shown, engines))}: {driver}; nothing was moved") from error
