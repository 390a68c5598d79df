"""Memory, journal and events."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import VARCHAR

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    key = sa.String(255).with_variant(VARCHAR(255, collation="utf8mb4_bin"), "mysql", "mariadb")
    op.create_table(
        "memory",
        sa.Column("section", sa.String(40), primary_key=True),
        sa.Column("key", key, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "journal",
        sa.Column("seq", sequence, primary_key=True, autoincrement=True),
        sa.Column("key", key, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Float(53), nullable=False),
        sa.Column("outcome_at", sa.Float(53)),
        sa.Column("error", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("journal_key", "journal", ["key"])
    op.create_index("journal_outcome_at", "journal", ["outcome_at"])
    op.create_table(
        "events",
        sa.Column("seq", sequence, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("kind", sa.String(80), nullable=False),
        sa.Column("node", sa.String(255)),
        sa.Column("job", sa.BigInteger),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_node", "events", ["node", "seq"])
    op.create_index("events_job", "events", ["job", "seq"])
