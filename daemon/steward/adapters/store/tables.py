"""The tables, of revision `engine.REVISION`."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import MEDIUMTEXT, VARCHAR

metadata = MetaData()

# SQLite counts by itself only in a column that is called INTEGER.
_SEQUENCE = BigInteger().with_variant(Integer(), "sqlite")

# MariaDB compares text without case and trailing spaces unless told otherwise: two keys must not become one.
KEY = String(255).with_variant(VARCHAR(255, collation="utf8mb4_bin"), "mysql", "mariadb")

# MariaDB's TEXT ends at 65,535 bytes, and a deep check of many nodes is one row of memory.
BODY = Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")

memory = Table(
    "memory",
    metadata,
    Column("section", String(40), primary_key=True),
    Column("key", KEY, primary_key=True),
    Column("body", BODY, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True, autoincrement=True),
    Column("key", KEY, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("body", BODY, nullable=False),
    Column("why", BODY, nullable=False),
    Column("asked_at", Float(53), nullable=False),
    Column("outcome_at", Float(53)),
    Column("error", BODY, nullable=False, default=""),
    Index("journal_key", "key"),
    Index("journal_outcome_at", "outcome_at"),
    sqlite_autoincrement=True,
)

events = Table(
    "events",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True, autoincrement=True),
    Column("at", Float(53), nullable=False),
    Column("kind", String(80), nullable=False),
    Column("node", String(255)),
    Column("job", BigInteger),
    Column("body", BODY, nullable=False),
    Index("events_node", "node", "seq"),
    Index("events_job", "job", "seq"),
    sqlite_autoincrement=True,
)

ledger = Table(
    "ledger",
    metadata,
    Column("key", KEY, primary_key=True),
    Column("kind", String(10), nullable=False),
    Column("begun", Float(53), nullable=False),
    Column("ended", Float(53)),
    Column("job", BigInteger),
    Column("body", BODY, nullable=False),
    Index("ledger_begun", "begun"),
    Index("ledger_job", "job"),
)

# Named as Alembic names it, so that a change after a release can be a step of Alembic's.
VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
